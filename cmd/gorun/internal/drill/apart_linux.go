package drill

import (
	"os/exec"
	"syscall"
)

// setApart shields a process from the signals of the terminal, and has it killed when the thread that starts it ends.
func setApart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// setMounts has a process start in a mount namespace of its own.
func setMounts(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Unshareflags |= syscall.CLONE_NEWNS
	return nil
}
