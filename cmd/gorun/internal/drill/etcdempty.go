package drill

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

var etcdEmpty = Scenario{
	Name:  "etcd-empty",
	About: "etcd is killed, and comes back without its data: the agents put back what they know, and no worker notices",
	job:   job{etcd: 1, ttl: steadyLease},
	steps: func(int) []step {
		return []step{
			fault("etcd loses its data", nobody, func(s *testbed) error {
				return s.signal(s.etcds[0], syscall.SIGKILL)
			}),
			undisturbed(steadyLease / 4),
			fault("etcd loses its data", nobody, func(s *testbed) error {
				if err := os.RemoveAll(filepath.Join(s.dir, "etcd0")); err != nil {
					return err
				}
				return s.startEtcd(0)
			}),
			// For so long agents may miss others.
			undisturbed(2*time.Second + 2*steadyLease),
		}
	},
}
