//go:build !linux

package drill

import (
	"errors"
	"os/exec"
	"syscall"
)

// setApart shields a process from the signals of the terminal.
func setApart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func setMounts(*exec.Cmd) error { return errors.New("mount namespaces need Linux") }
