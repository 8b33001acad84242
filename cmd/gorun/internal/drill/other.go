//go:build !linux

package drill

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
)

// setApart keeps the terminal's signals from a process.
func setApart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// A network cannot be had here.
type network struct{}

// An unavailableError says what this machine lacks.
type unavailableError struct{ err error }

func (e *unavailableError) Error() string { return e.err.Error() }

func newNetwork() (*network, error) {
	return nil, &unavailableError{errors.New("network namespaces are Linux's")}
}

func networkAddr(int) string                  { return "" }
func (n *network) start(*exec.Cmd, int) error { return fmt.Errorf("no network") }
func (n *network) cut(int) error              { return fmt.Errorf("no network") }
func (n *network) mend(int) error             { return fmt.Errorf("no network") }
func (n *network) close()                     {}
