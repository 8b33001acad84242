package remote

import "syscall"

// executable is the file of this program, even if it has been replaced or removed.
func executable() (string, error) { return "/proc/self/exe", nil }

// attributes put gorun in a process group of its own, and kill it if this process dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
