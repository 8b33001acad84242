package workergroup

import (
	"net"
	"os"
	"slices"

	"github.com/gorun/gorun/env/proc"
)

// maxDepth bounds how deep a process may be below a worker.
const maxDepth = 1000

// isOf reports whether the process that has made a connection is the worker, or has been started by it; if others between them have ended, it
// is in the worker's process group, or has the worker's variable in its environment.
func isOf(conn *net.UnixConn, worker int, variable string) bool {
	pid, _, err := proc.PeerOf(conn)
	w, ok := proc.Read(worker)
	if err != nil || !ok {
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
