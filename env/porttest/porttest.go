// Package porttest reserves TCP ports for what tests start. A reserved port is bound and does not listen, as launcher's are: connections
// to it are refused, and a server that sets SO_REUSEADDR, as those of package net do, can listen on it. Nobody else gets it: neither the
// system, which has other ports for whoever asks for any, nor another test or a gorun, in this process or another, that reserves one.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/fdtest"
)

// first and count are of pairs of ports. Linux gives away those from 32768 on.
const (
	first = 10000
	count = 10000
)

// A Port is reserved on all IPv4 addresses of this machine until it is closed.
type Port struct {
	*os.File
	number int
}

// Number is the port's number.
func (p *Port) Number() int { return p.number }

// Reserve reserves a port, or any that is free if it is 0. Several may reserve the same port if they name it and nobody listens on it.
func Reserve(port int) (*Port, error) {
	if port != 0 {
		return bind(port, true)
	}
	return attempt(Claim)
}

// Claim reserves a port that nobody else has reserved.
func Claim(port int) (*Port, error) { return bind(port, false) }

// Find reserves a port and the next one, since an etcd server listens on both, until the caller releases them.
func Find() (port int, release func(), err error) {
	var next *Port
	p, err := attempt(func(port int) (*Port, error) {
		p, err := Claim(port)
		if err != nil {
			return nil, err
		}
		if next, err = Claim(port + 1); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		return p, nil
	})
	if err != nil {
		return 0, nil, err
	}
	return p.number, func() { _, _ = p.Close(), next.Close() }, nil
}

// Free is Find until the test ends.
func Free(t testing.TB) int {
	t.Helper()
	port, release, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// attempt calls reserve with the first of a pair of ports until one is free.
func attempt(reserve func(port int) (*Port, error)) (p *Port, err error) {
	for range 100 {
		if p, err = reserve(first + 2*rand.IntN(count)); !errors.Is(err, syscall.EADDRINUSE) {
			return p, err
		}
	}
	return nil, err
}

// bind binds a port, which others may bind from now on with SO_REUSEADDR. Shared: they may have done so already.
func bind(port int, shared bool) (*Port, error) {
	fd, err := fdtest.Socket()
	if err != nil {
		return nil, err
	}
	if shared {
		err = share(fd)
	}
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port})
	}
	if err == nil && !shared {
		err = share(fd)
	}
	if err != nil {
		return nil, fmt.Errorf("port %d: %w", port, errors.Join(err, syscall.Close(fd)))
	}
	return &Port{os.NewFile(uintptr(fd), fmt.Sprint("port ", port)), port}, nil
}

func share(fd int) error {
	return syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
}
