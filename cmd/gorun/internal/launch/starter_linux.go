package launch

import "syscall"

// attributes put a remote shell in a session of its own, and kill it if this process dies. So ^C does not reach it, and it cannot wait for a
// password that somebody would have to type. On a busy machine it also gets more processor time: Linux divides that among sessions first
// (sched_autogroup_enabled).
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
