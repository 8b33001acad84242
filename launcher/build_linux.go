package launcher

import "syscall"

// dieWithUs makes a child get sig when the thread that starts it ends.
func dieWithUs(sig syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: sig} }
