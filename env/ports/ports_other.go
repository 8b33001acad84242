//go:build !linux

package ports

import (
	"net"
	"strconv"
)

// reserve finds out that a port is free.
func reserve(host string, port int, _ sharing) (*Port, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, &Error{Host: host, Port: port, Err: err}
	}
	number := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return nil, &Error{Host: host, Port: port, Err: err}
	}
	return &Port{number, func() error { return nil }}, nil
}
