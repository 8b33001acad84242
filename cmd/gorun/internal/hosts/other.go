//go:build !linux

package hosts

import (
	"errors"
	"os/exec"
)

// A Network does not exist on this system.
type Network struct{}

// An UnavailableError says what this machine lacks.
type UnavailableError struct{ Why string }

func (e *UnavailableError) Error() string { return e.Why }

var errLinux = errors.New("network namespaces need Linux")

func New() (*Network, error) { return nil, &UnavailableError{errLinux.Error()} }

func Addr(int) string                         { return "" }
func (n *Network) Start(*exec.Cmd, int) error { return errLinux }
func (n *Network) Cut(int) error              { return errLinux }
func (n *Network) Heal(int) error             { return errLinux }
func (n *Network) CutInbound(int) error       { return errLinux }
func (n *Network) HealInbound(int) error      { return errLinux }
func (n *Network) Isolate(...int) error       { return errLinux }
func (n *Network) Rejoin(...int) error        { return errLinux }
func (n *Network) Close()                     {}
