package workergroup

import (
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/launcher/proc"
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

// isBelow reports whether a process is the worker, or has been started by it, perhaps through others that have ended: then it is a child
// of the worker's guard.
func isBelow(pid, worker int) bool {
	w, ok := proc.Read(worker)
	if !ok {
		return false
	}
	for range maxDepth {
		if pid == worker || pid == w.Parent && pid != os.Getpid() {
			return true
		}
		p, ok := proc.Read(pid)
		if !ok || pid <= 1 {
			return false
		}
		pid = p.Parent
	}
	return false
}
