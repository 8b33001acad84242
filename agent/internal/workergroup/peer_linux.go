package workergroup

import (
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/proc"
)

// peerOf returns the process that has made a connection; 0: it is not known.
func peerOf(conn *net.UnixConn) (pid int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// maxDepth bounds how deep a process may be below a worker.
const maxDepth = 1000

// isOf reports whether a process is the worker, or has been started by it; if others between them have ended, it is
// in the worker's process group, or has the worker's variable in its environment.
func isOf(pid, worker int, variable string) bool {
	w, ok := proc.Read(worker)
	if !ok {
		return false
	}
	for range maxDepth {
		p, ok := proc.Read(pid)
		switch {
		case pid == worker:
			return true
		case !ok || pid <= 1:
			return false
		case p.Parent == w.Parent && w.Parent != os.Getpid():
			return p.Group == worker || slices.Contains(p.Environ(), variable)
		}
		pid = p.Parent
	}
	return false
}
