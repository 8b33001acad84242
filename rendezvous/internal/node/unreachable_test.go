package node

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/rendezvous"
)

// An address is not wrong because the node that calls has no descriptors left.
func TestWantOfDescriptorsIsNoWrongAddress(t *testing.T) {
	err := &UnreachableError{
		Self: rendezvous.Node{Host: "n1"}, Master: "n0", Agent: "n0:1234",
		Err: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)},
	}
	if got := err.Error(); !strings.Contains(got, "n1 cannot call n0, where rank 0 is: socket: too many open files: raise the limit") || strings.Contains(got, "--local-addr") {
		t.Errorf("got %s", got)
	}
}
