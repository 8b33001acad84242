package drill

import (
	"fmt"
	"math"
	"syscall"
	"time"
)

// After how long a silent node is lost: leaseTime where a drill waits for this, and steadyLease where it must not happen
// although agents may need more than a second to find an etcd that is back. Much shorter leases would expire on a busy
// machine.
const (
	leaseTime   = 2 * time.Second
	steadyLease = 3 * time.Second
)

// logFlag has an agent keep log files, in a directory below that of the scenario.
const logFlag = "--log-dir=logs"

// watched are the flags of a job that watches for workers that hang.
var watched = []string{"--hang-timeout=2", logFlag}

// Scenarios are all scenarios. Node n-1 is the last one.
var Scenarios = []*Scenario{
	{
		Name:     "worker-kill",
		About:    "a worker is killed, which costs one restart: the workers of all nodes start again, or it alone",
		restarts: 1,
		steps: func(n int) []step {
			return []step{faultOfWorker(syscall.SIGKILL, n-1), again(upTo(0, n))}
		},
	}, {
		Name:     "worker-stop",
		About:    "a worker is suspended: after --hang-timeout, it is named and killed, which costs one restart",
		needs:    "your program has to report progress, since only then gorun sees that it hangs: see gorun's docs/hang.md",
		job:      job{flags: watched},
		restarts: 1,
		steps:    func(n int) []step { return []step{faultOfWorker(syscall.SIGSTOP, n-1), again(upTo(0, n))} },
	}, {
		Name:     "worker-hang",
		About:    "a worker loops, and computes no more: after --hang-timeout, it is named and killed, which costs one restart",
		builtin:  true,
		job:      job{flags: watched},
		restarts: 1,
		steps:    func(n int) []step { return []step{faultOfLoop(n - 1), again(upTo(0, n))} },
	}, {
		Name:     "worker-oom",
		About:    "a worker takes more memory than its cgroup may, and the kernel kills it: as in worker-kill, and all learn why",
		builtin:  true,
		job:      job{memory: true},
		restarts: 1,
		steps:    func(n int) []step { return []step{faultOfMemory(n - 1), again(upTo(0, n))} },
	}, {
		Name:     "two-at-once",
		About:    "rank 0 and the last rank, on different nodes, are killed at once: the job recovers in one new round, or in two",
		restarts: -1,
		steps: func(n int) []step {
			return []step{
				faultOfWorkers(syscall.SIGKILL, "SIGKILL to rank 0 and the last rank", firstAndLast),
				again(upTo(0, n)), restarts(1, 2),
			}
		},
	}, {
		Name:     "console-blocked",
		About:    "nobody reads the output of a node's workers, and one of them is killed: the job recovers all the same",
		builtin:  true,
		job:      job{unread: true},
		restarts: 1,
		steps: func(n int) []step {
			return []step{consoleFull(n - 1), faultOfWorker(syscall.SIGKILL, n-1), again(upTo(0, n)), readConsole(n - 1)}
		},
	}, {
		Name:     "disk-full",
		About:    "the disk with the log files of a node is full, and one of its workers is killed: the job recovers all the same",
		builtin:  true,
		job:      job{disk: true},
		restarts: 1,
		steps: func(n int) []step {
			return []step{diskFull(n - 1), faultOfWorker(syscall.SIGKILL, n-1), again(upTo(0, n))}
		},
	}, {
		Name:  "agent-kill",
		About: "an agent is killed: its workers die with it, and the other nodes go on without it",
		job:   job{etcd: 1, spare: 1, ttl: leaseTime},
		steps: func(n int) []step {
			return []step{breaks(onNode(n-1), signalAgent(syscall.SIGKILL, n-1)), again(upTo(0, n-1)), noWorkers(n - 1)}
		},
	}, {
		Name:  "spare-swap",
		About: "an agent is killed, and there is a spare: it takes the ranks of the dead, and the others keep theirs",
		job:   job{etcd: 1, enough: math.MaxInt, ttl: leaseTime},
		steps: func(n int) []step {
			return []step{
				start(n), announced("waits", n), undisturbed(leaseTime / 4),
				breaks(onNode(n-1), signalAgent(syscall.SIGKILL, n-1)), again(append(upTo(0, n-1), n)),
				sameRanks(n-1, n), noWorkers(n - 1),
			}
		},
	}, {
		Name:  "leader-kill",
		About: "the agent that decides about rounds is killed: another one takes over",
		job:   job{etcd: 1, first: 1, spare: math.MaxInt, ttl: leaseTime, lastCall: leaseTime}, // the node that is alone at first leads
		steps: func(n int) []step {
			return []step{
				start(upTo(1, n)...), together(upTo(0, n)),
				breaks(onNode(0), signalAgent(syscall.SIGKILL, 0)), again(upTo(1, n)), noWorkers(0),
			}
		},
	}, {
		Name:  "agent-stop",
		About: "an agent is suspended until the others have gone on without it: when it resumes, it joins again",
		job:   job{etcd: 1, spare: 1, hang: true, ttl: leaseTime},
		steps: func(n int) []step {
			return []step{
				breaks(onNode(n-1), signalAgent(syscall.SIGSTOP, n-1)), again(upTo(0, n-1)), oldWorkers(n - 1),
				signalAgent(syscall.SIGCONT, n-1), together(upTo(0, n)), livedOn(n - 1),
			}
		},
	}, {
		Name:  "etcd-kill",
		About: "etcd is killed, and comes back with its data after the leases would have expired: no worker notices",
		job:   job{etcd: 1, ttl: steadyLease},
		steps: func(int) []step {
			return []step{
				breaks(nobody, signalEtcd(syscall.SIGKILL, 0)), undisturbed(steadyLease + steadyLease/4),
				startEtcd(0), undisturbed(steadyLease + steadyLease/4),
			}
		},
	}, {
		Name:  "etcd-member-kill",
		About: "one of three members of etcd is killed: no worker notices",
		job:   job{etcd: 3, ttl: steadyLease},
		steps: func(int) []step {
			return []step{breaks(nobody, signalEtcd(syscall.SIGKILL, 0)), undisturbed(steadyLease + steadyLease/4)}
		},
	}, {
		Name:     "etcd-slow",
		About:    "etcd stands still for four fifths of the time: no worker notices; then one is killed, and the job recovers",
		job:      job{etcd: 1, ttl: steadyLease},
		restarts: 1,
		steps: func(n int) []step {
			return []step{
				slowEtcd(0), undisturbed(steadyLease + steadyLease/4),
				faultOfWorker(syscall.SIGKILL, n-1), again(upTo(0, n)), steadyEtcd(),
			}
		},
	}, {
		Name:  "host-vanished",
		About: "one of three nodes that host the rendezvous is cut off: the others go on without it; it restarts and hosts again, and then the next one is cut off",
		job:   job{hosts: 3, network: true, spare: 1, hang: true, ttl: 2 * leaseTime},
		steps: func(n int) []step {
			return []step{
				breaks(onNode(0), cut(0)), again(upTo(1, n)), oneRound(),
				signalAgent(syscall.SIGKILL, 0), noWorkers(0),
				start(0), together(upTo(0, n)), announced("hosts the rendezvous", 0),
				cut(1), together(append(upTo(0, 1), upTo(2, n)...)),
				heal(1), together(upTo(0, n)),
			}
		},
	}, {
		Name:  "node-partition-short",
		About: "a node is cut off for a moment: no worker notices",
		job:   job{etcd: 1, network: true, spare: 1, hang: true, ttl: 2 * leaseTime},
		steps: func(n int) []step {
			return []step{breaks(onNode(n-1), cut(n-1)), pause(leaseTime / 4), heal(n - 1), undisturbed(leaseTime)}
		},
	}, {
		Name:  "node-partition-long",
		About: "a node is cut off until the others have gone on without it: when it is back, it joins again",
		job:   job{etcd: 1, network: true, spare: 1, hang: true, ttl: 2 * leaseTime},
		steps: func(n int) []step {
			return []step{
				breaks(onNode(n-1), cut(n-1)), again(upTo(0, n-1)), oldWorkers(n - 1),
				heal(n - 1), together(upTo(0, n)), livedOn(n - 1),
			}
		},
	}, {
		Name:  "node-partition-one-way",
		About: "a node does not get what others send to it, while they get what it sends: the others go on without it until it is back",
		job:   job{etcd: 1, network: true, spare: 1, hang: true, ttl: 2 * leaseTime},
		steps: func(n int) []step {
			return []step{
				breaks(onNode(n-1), cutInbound(n-1)), again(upTo(0, n-1)), heal(n - 1), together(upTo(0, n)), livedOn(n - 1),
			}
		},
	}, {
		Name:  "scale-up",
		About: "a node is added: a new round begins with it, which costs no restart",
		job:   job{first: -1, spare: 1, lastCall: time.Second / 5},
		steps: func(n int) []step {
			added := start(n - 1).named(fmt.Sprintf("node %d is added", n-1))
			return []step{breaks(onNode(n-1), added), again(upTo(0, n))}
		},
	}, {
		Name:  "scale-down",
		About: "an agent is asked to end (SIGTERM): its workers may exit cleanly, and the others go on without it, which costs no restart",
		job:   job{spare: 1},
		steps: func(n int) []step {
			return []step{breaks(onNode(n-1), signalAgent(syscall.SIGTERM, n-1)), again(upTo(0, n-1)), obeyed(syscall.SIGTERM, n-1)}
		},
	}, {
		Name:  "newcomer-clash",
		About: "a new node asks for the rank of another node: it ends with exit code 2, and the others do not notice",
		job:   job{etcd: 1, first: -1, spare: 1, ranks: true, ttl: leaseTime, lastCall: leaseTime},
		steps: func(int) []step {
			return []step{breaks(nobody, newcomerWithRank(0)), newcomerFails(2)}
		},
	}, {
		Name:  "flapping-node",
		About: "a new node fails to start its workers, and comes again: it is kept out for a while, and the job uses no restart",
		job:   job{etcd: 1, first: -1, spare: 1, ttl: leaseTime, lastCall: flappingCall},
		steps: func(n int) []step {
			return []step{
				breaks(nobody, brokenNewcomer().named("a new node fails")), newcomerEnds(), again(upTo(0, n-1)),
				brokenNewcomer().named("it comes again, and is kept out"), undisturbed(5 * flappingCall), signalAgent(syscall.SIGTERM, newcomer).named("it gets SIGTERM"), newcomerEnds(),
			}
		},
	}, {
		Name:  "etcd-empty",
		About: "etcd is killed, and comes back without its data: the workers go on to their end",
		job:   job{etcd: 1, ttl: steadyLease},
		steps: func(int) []step {
			return []step{
				breaks(nobody, signalEtcd(syscall.SIGKILL, 0)), undisturbed(steadyLease / 4),
				breaks(nobody, startEmptyEtcd(0)), undisturbed(2*time.Second + 2*steadyLease), // for so long agents may miss others
			}
		},
	}, {
		Name:  "etcd-no-leader",
		About: "a node joins just after etcd has lost its leader: it waits, and is let in when there is a leader again",
		job:   job{etcd: 3, first: -1, spare: 1, ttl: steadyLease, lastCall: leaseTime},
		steps: func(n int) []step {
			return []step{
				breaks(nobody, signalEtcd(syscall.SIGSTOP, 0, 1)), start(n - 1), undisturbed(2 * steadyLease),
				signalEtcd(syscall.SIGCONT, 0, 1), again(upTo(0, n)),
			}
		},
	},
}
