package drill

import "syscall"

var memberKill = Scenario{
	Name:  "etcd-member-kill",
	About: "one of three members of etcd is killed: no worker notices",
	job:   job{etcd: 3, ttl: steadyLease},
	steps: func(int) []step {
		return []step{
			faultOfEtcd(syscall.SIGKILL, 0),
			undisturbed(steadyLease + steadyLease/4),
		}
	},
}
