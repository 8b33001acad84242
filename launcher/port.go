package launcher

import (
	"errors"
	"fmt"
	"syscall"
)

// Port is a TCP port reserved for rank 0. It is bound but does not listen: the system gives the port to
// nobody else, a program that asks for it without SO_REUSEADDR does not get it, and connections to it are refused.
// A program that sets SO_REUSEADDR, as servers do (Go's net.Listen, torch's TCPStore), can bind it and listen on
// it while it is reserved: there is no moment between reservation and use in which the port is free.
type Port struct {
	number int
	close  func() error
}

// Number is the port's number.
func (p *Port) Number() int { return p.number }

// Close gives up the port. A program that listens on it by now is not affected. Call Close once.
func (p *Port) Close() error { return p.close() }

// PortError says why a port could not be reserved.
type PortError struct {
	Host string // as asked for; empty: all addresses
	Port int
	Err  error
}

func (e *PortError) Error() string {
	host := e.Host
	if host == "" {
		host = "all addresses"
	}
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE) && e.Port == 0:
		return fmt.Sprintf("no port on %s is free", host)
	case errors.Is(e.Err, syscall.EADDRINUSE):
		return fmt.Sprintf("port %d on %s is in use by another process: choose another with --master-port", e.Port, host)
	case errors.Is(e.Err, syscall.EACCES):
		return fmt.Sprintf("port %d on %s needs privileges: choose one above 1023 with --master-port", e.Port, host)
	case errors.Is(e.Err, syscall.EADDRNOTAVAIL):
		return fmt.Sprintf("%s is not an address of this machine: choose one of this machine's with --master-addr", host)
	}
	return fmt.Sprintf("cannot reserve port %d on %s: %v", e.Port, host, e.Err)
}

// Unwrap returns the cause.
func (e *PortError) Unwrap() error { return e.Err }
