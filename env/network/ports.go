package network

import (
	"errors"
	"fmt"
	"syscall"
)

// A Port is reserved until it is closed. It is bound but does not listen: the system gives the port to nobody else, a program that asks for it
// without SO_REUSEADDR does not get it, and connections to it are refused. A program that sets SO_REUSEADDR, as servers do (Go's net.Listen,
// torch's TCPStore), can bind it and listen on it while it is reserved: there is no moment between reservation and use in which the port is
// free.
//
// On systems other than Linux, a Port was only free when it was reserved.
type Port struct {
	number int
	close  func() error
}

// Number is the port's number.
func (p *Port) Number() int { return p.number }

// Close gives up the port. A program that listens on it by now is not affected. Close may be called again.
func (p *Port) Close() error { return p.close() }

// ReservePort reserves a TCP port on an address of this machine, or on all its addresses if host is empty. Host is an address or a name. Port 0
// means any free port, if possible one that the system never gives to an outgoing connection. So nobody gets the port by chance after Close,
// before the server listens. A port that you name may be reserved by others too: it is refused only if somebody listens on it. If the port
// cannot be reserved, the error is a *PortError.
func ReservePort(host string, port int) (*Port, error) { return reservePort(host, port, shared) }

// ClaimPort is ReservePort, but refuses a port that anybody has reserved, this process too, or where connections of an earlier server linger.
func ClaimPort(host string, port int) (*Port, error) { return reservePort(host, port, exclusive) }

// ReservePortPair reserves any port, as ReservePort does, and the next one: a member of an etcd cluster listens on both.
func ReservePortPair(host string) (first, next *Port, err error) {
	for range mostTries {
		if first, err = ReservePort(host, 0); err != nil {
			return nil, nil, err
		}
		if first.Number() < highest {
			if next, err = ClaimPort(host, first.Number()+1); err == nil {
				return first, next, nil
			}
		}
		if closed := first.Close(); closed != nil || err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			return nil, nil, errors.Join(err, closed)
		}
	}
	return nil, nil, &PortError{Host: host, Err: syscall.EADDRINUSE}
}

const (
	mostTries = 16    // random ports, before the system chooses one; in ReservePortPair, pairs
	highest   = 65535 // port number
)

// A sharing says whether to bind a port that others have bound but do not listen on.
type sharing bool

const (
	exclusive sharing = false
	shared    sharing = true
)

// A PortError says why a port could not be reserved.
type PortError struct {
	Host string // as asked for; empty: all addresses
	Port int
	Err  error
}

// Error is one line.
func (e *PortError) Error() string {
	host := e.Host
	if host == "" {
		host = "all addresses"
	}
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE) && e.Port == 0:
		return fmt.Sprintf("no port on %s is free", host)
	case errors.Is(e.Err, syscall.EADDRINUSE):
		return fmt.Sprintf("port %d on %s is in use by another process", e.Port, host)
	case errors.Is(e.Err, syscall.EACCES):
		return fmt.Sprintf("port %d on %s needs privileges", e.Port, host)
	case errors.Is(e.Err, syscall.EADDRNOTAVAIL):
		return fmt.Sprintf("%s is not an address of this machine", host)
	}
	return fmt.Sprintf("cannot reserve port %d on %s: %v", e.Port, host, e.Err)
}

// Unwrap returns the cause.
func (e *PortError) Unwrap() error { return e.Err }
