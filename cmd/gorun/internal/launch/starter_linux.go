package launch

import "syscall"

// attributes put a remote shell in a process group of its own, so that ^C does not reach it, and kill it if this process dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
