//go:build !linux

package drill

import (
	"os/exec"
	"syscall"
)

// setApart keeps the terminal's signals from a process.
func setApart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
