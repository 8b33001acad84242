package launcher

import "syscall"

// dieWithUs makes the kernel send sig to a child when the thread that starts it ends.
func dieWithUs(sig syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: sig} }
