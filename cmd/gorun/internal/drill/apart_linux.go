package drill

import (
	"os/exec"
	"syscall"
)

// setApart shields a process from the signals of the terminal, and has it killed when the thread that starts it ends.
func setApart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
