package drill

import "syscall"

var etcdKill = Scenario{
	Name:  "etcd-kill",
	About: "etcd is killed, and comes back with its data when leases would be over: no worker notices",
	job:   job{etcd: 1, ttl: steadyLease},
	steps: func(int) []step {
		return []step{
			faultOfEtcd(syscall.SIGKILL, 0),
			undisturbed(steadyLease + steadyLease/4),
			restartEtcd(0),
			undisturbed(steadyLease + steadyLease/4),
		}
	},
}
