package job

import (
	"errors"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/network"
)

// TestMasterPortErrors say which flag to change, if one is the cause.
func TestMasterPortErrors(t *testing.T) {
	for _, c := range []struct {
		port  int
		errno syscall.Errno
		want  string
	}{
		{29500, syscall.EADDRINUSE, "port 29500 on h is in use by another process: choose another with --master-port"},
		{0, syscall.EADDRINUSE, "no port on h is free"},
		{80, syscall.EACCES, "port 80 on h needs privileges: choose one above 1023 with --master-port"},
		{0, syscall.EADDRNOTAVAIL, "h is not an address of this machine: choose one of this machine's with --master-addr"},
		{0, syscall.EMFILE, "cannot reserve port 0 on h: too many open files"},
	} {
		err := withFlag(&network.PortError{Host: "h", Port: c.port, Err: c.errno}, c.port)
		if err.Error() != c.want || !errors.Is(err, c.errno) {
			t.Errorf("%v: got %v", c.want, err)
		}
	}
}
