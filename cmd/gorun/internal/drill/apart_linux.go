package drill

import (
	"os/exec"
	"syscall"
)

// setApart keeps the terminal's signals from a process, and lets it not outlive the thread that starts it.
func setApart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
