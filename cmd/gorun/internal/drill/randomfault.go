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

// A randomFault is one that lasts for a while, and is then over.
type randomFault struct {
	what  string
	costs int           // restarts
	on    target        // two at once hit different ones
	lasts time.Duration // at least
	begin func(context.Context, *stage) error
	end   func(context.Context, *stage) error // nil: it is over at once
}

// A target is what a fault hits.
type target struct {
	etcd   bool
	number int // of the node, or the member
}

func describeFaults(list []randomFault) string {
	var what []string
	for _, t := range list {
		what = append(what, t.what)
	}
	return strings.Join(what, ", and ")
}

// choosePauses is how long each fault lasts before the next one, and a while after the last.
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

// chooseFaults is one, or sometimes two that hit different things.
func chooseFaults(r *rand.Rand, nodes, members int) []randomFault {
	list := []randomFault{chooseFault(r, nodes, members)}
	if r.IntN(4) > 0 {
		return list
	}
	for {
		if second := chooseFault(r, nodes, members); second.on != list[0].on {
			return append(list, second)
		}
	}
}

func chooseFault(r *rand.Rand, nodes, members int) randomFault {
	node, member := target{number: r.IntN(nodes)}, target{true, r.IntN(members)}
	fatal := []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGABRT}[r.IntN(3)]
	switch r.IntN(9) {
	case 0, 1:
		return workerDies(node, fatal)
	case 2:
		return agentEnds(node, syscall.SIGKILL)
	case 3:
		return agentEnds(node, syscall.SIGTERM)
	case 4:
		return stops(node, fmt.Sprintf("the agent of node %d is stopped", node.number), func(s *stage) *process { return s.agents[node.number] })
	case 5:
		return isCut(node, fmt.Sprintf("node %d is cut off", node.number), node.number)
	case 6:
		return memberDies(member)
	case 7:
		return loseEachOther(node, (node.number+1+r.IntN(nodes-1))%nodes, r.IntN(2) == 0)
	default:
		if r.IntN(2) == 0 {
			return isCut(member, fmt.Sprintf("member %d of etcd is cut off", member.number), etcdHost(member.number))
		}
		return stops(member, fmt.Sprintf("member %d of etcd is stopped", member.number), func(s *stage) *process { return s.etcds[member.number] })
	}
}

func workerDies(node target, sig syscall.Signal) randomFault {
	return randomFault{
		what: fmt.Sprintf("%s to a worker of node %d", unix.SignalName(sig), node.number), costs: 1, on: node,
		begin: func(_ context.Context, s *stage) error {
			if list := s.world.live(node.number); len(list) > 0 { // another fault may have been faster
				_ = list[0].process.Signal(sig) // it may have ended
			}
			return nil
		},
	}
}

// agentEnds is an agent that ends by a signal, and is started again by the same command.
func agentEnds(node target, sig syscall.Signal) randomFault {
	var p *process
	return randomFault{
		what: fmt.Sprintf("%s to the agent of node %d, which is started again", unix.SignalName(sig), node.number), on: node,
		begin: func(_ context.Context, s *stage) error {
			p = s.agents[node.number]
			return s.signal(p, sig)
		},
		end: func(ctx context.Context, s *stage) error {
			if err := s.await(ctx, func(w *world) bool { return p.ended && len(w.live(node.number)) == 0 }); err != nil {
				return err
			}
			return s.startAgent(node.number)
		},
	}
}

func memberDies(member target) randomFault {
	var p *process
	return randomFault{
		what: fmt.Sprintf("SIGKILL to member %d of etcd, which is started again", member.number), on: member,
		begin: func(_ context.Context, s *stage) error {
			p = s.etcds[member.number]
			return s.signal(p, syscall.SIGKILL)
		},
		end: func(ctx context.Context, s *stage) error {
			if err := s.await(ctx, func(*world) bool { return p.ended }); err != nil {
				return err
			}
			return s.startEtcd(member.number)
		},
	}
}

// stops is a process that is stopped, and goes on.
func stops(h target, what string, of func(*stage) *process) randomFault {
	var p *process
	return randomFault{
		what: what, on: h,
		begin: func(_ context.Context, s *stage) error {
			p = of(s)
			return s.signal(p, syscall.SIGSTOP)
		},
		end: func(_ context.Context, s *stage) error { return s.signal(p, syscall.SIGCONT) },
	}
}

// loseEachOther is two nodes that do, while both reach all others: for a moment, or so long that it is noticed.
func loseEachOther(node target, other int, long bool) randomFault {
	f := randomFault{
		what: fmt.Sprintf("nodes %d and %d lose each other", node.number, other), on: node,
		begin: func(_ context.Context, s *stage) error { return s.network.Isolate(node.number, other) },
		end:   func(_ context.Context, s *stage) error { return s.network.Rejoin(node.number, other) },
	}
	if long {
		f.what += " for long"
		f.lasts = silenceTime + silenceTime/2 // until after it has been noticed
	}
	return f
}

// isCut is a host whose network is gone for a while.
func isCut(h target, what string, host int) randomFault {
	return randomFault{
		what: what, on: h,
		begin: func(_ context.Context, s *stage) error { return s.network.Cut(host) },
		end:   func(_ context.Context, s *stage) error { return s.network.Mend(host) },
	}
}
