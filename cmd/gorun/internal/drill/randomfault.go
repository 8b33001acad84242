package drill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A randomFault lasts for a while.
type randomFault struct {
	what  string // for people
	costs int    // restarts of the job
	on    target
	lasts time.Duration // at least
	begin func(context.Context, *drill) error
	end   func(context.Context, *drill) error // nil: it is over at once
}

// A target is what a fault hits.
type target struct {
	etcd   bool
	number int // of the node, or of the member of etcd
}

func describeFaults(list []randomFault) string {
	var what []string
	for _, f := range list {
		what = append(what, f.what)
	}
	return strings.Join(what, ", and ")
}

// choosePauses returns n pauses: how long each fault lasts before the next one begins, and a pause after the last.
func choosePauses(r *rand.Rand, n int) (pauses []time.Duration) {
	for range n {
		pause := time.Duration(r.Int64N(int64(time.Second)))
		if r.IntN(3) == 0 {
			pause = time.Duration(r.Int64N(int64(2 * randomLease)))
		}
		pauses = append(pauses, pause)
	}
	pauses[n-1] = min(pauses[n-1], time.Second)
	return pauses
}

// chooseFaults returns one fault, or sometimes two with different targets. Of two nodes, only one is a target.
func chooseFaults(r *rand.Rand, nodes, members int) []randomFault {
	list := []randomFault{chooseFault(r, nodes, members)}
	if r.IntN(4) > 0 {
		return list
	}
	for {
		if second := chooseFault(r, nodes, members); second.on != list[0].on && (nodes > 2 || second.on.etcd || list[0].on.etcd) {
			return append(list, second)
		}
	}
}

func chooseFault(r *rand.Rand, nodes, members int) randomFault {
	node, member := target{number: r.IntN(nodes)}, target{true, r.IntN(members)}
	fatal := []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGABRT}[r.IntN(3)]
	switch r.IntN(9) {
	case 0, 1:
		return killWorker(node, fatal)
	case 2:
		return restartAgent(node, syscall.SIGKILL)
	case 3:
		return restartAgent(node, syscall.SIGTERM)
	case 4:
		return suspend(node, fmt.Sprintf("the agent of node %d is stopped", node.number), func(d *drill) *process { return d.agents[node.number] })
	case 5:
		return cutOff(node, fmt.Sprintf("node %d is cut off", node.number), node.number)
	case 6:
		return restartMember(member)
	case 7:
		return isolate(node, (node.number+1+r.IntN(nodes-1))%nodes, r.IntN(2) == 0)
	default:
		if r.IntN(2) == 0 {
			return cutOff(member, fmt.Sprintf("member %d of etcd is cut off", member.number), etcdHost(member.number))
		}
		return suspend(member, fmt.Sprintf("member %d of etcd is stopped", member.number), func(d *drill) *process { return d.etcds[member.number] })
	}
}

func killWorker(node target, sig syscall.Signal) randomFault {
	return randomFault{
		what: fmt.Sprintf("%s to a worker of node %d", unix.SignalName(sig), node.number), costs: 1, on: node,
		begin: func(_ context.Context, d *drill) error {
			if list := d.live(node.number); len(list) > 0 { // another fault may have been faster
				_ = list[0].process.Signal(sig) // it may have ended
			}
			return nil
		},
	}
}

// restartAgent ends an agent with a signal, and restarts it with the same command.
func restartAgent(node target, sig syscall.Signal) randomFault {
	var p *process
	return randomFault{
		what: fmt.Sprintf("%s to the agent of node %d, which is started again", unix.SignalName(sig), node.number), on: node,
		begin: func(_ context.Context, d *drill) error {
			p = d.agents[node.number]
			return d.signal(p, sig)
		},
		end: func(ctx context.Context, d *drill) error {
			if err := d.await(ctx, func() bool { return p.ended && len(d.live(node.number)) == 0 }); err != nil {
				return err
			}
			return d.startAgent(node.number)
		},
	}
}

func restartMember(member target) randomFault {
	var p *process
	return randomFault{
		what: fmt.Sprintf("SIGKILL to member %d of etcd, which is started again", member.number), on: member,
		begin: func(_ context.Context, d *drill) error {
			p = d.etcds[member.number]
			return d.signal(p, syscall.SIGKILL)
		},
		end: func(ctx context.Context, d *drill) error {
			if err := d.await(ctx, func() bool { return p.ended }); err != nil {
				return err
			}
			return d.startEtcd(member.number)
		},
	}
}

// suspend stops a process with SIGSTOP, and later continues it.
func suspend(on target, what string, of func(*drill) *process) randomFault {
	var p *process
	return randomFault{
		what: what, on: on,
		begin: func(_ context.Context, d *drill) error {
			p = of(d)
			return d.signal(p, syscall.SIGSTOP)
		},
		end: func(_ context.Context, d *drill) error { return d.signal(p, syscall.SIGCONT) },
	}
}

// isolate separates two nodes, while both reach all others: for a moment, or long enough for them to notice.
func isolate(node target, other int, long bool) randomFault {
	f := randomFault{
		what: fmt.Sprintf("nodes %d and %d lose each other", node.number, other), on: node,
		begin: func(_ context.Context, d *drill) error { return d.network.Isolate(node.number, other) },
		end:   func(_ context.Context, d *drill) error { return d.network.Rejoin(node.number, other) },
	}
	if long {
		f.what += " for long"
		f.lasts = silenceTime + silenceTime/2 // until after it has been noticed
	}
	return f
}

// cutOff cuts a host off from all others.
func cutOff(on target, what string, host int) randomFault {
	return randomFault{
		what: what, on: on,
		begin: func(_ context.Context, d *drill) error { return d.cut(host, false) },
		end:   func(_ context.Context, d *drill) error { return d.heal(host) },
	}
}
