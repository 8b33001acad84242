//go:build !linux

package network

import (
	"net"
	"strconv"
)

// reservePort finds out that a port is free.
func reservePort(host string, port int, _ sharing) (*Port, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, &PortError{Host: host, Port: port, Err: err}
	}
	number := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return nil, &PortError{Host: host, Port: port, Err: err}
	}
	return &Port{number, func() error { return nil }}, nil
}
