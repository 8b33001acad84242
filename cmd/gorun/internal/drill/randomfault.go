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

// A randomFault has a beginning, by which people know it, and an end.
type randomFault struct {
	begin    step
	end      []step        // none: it is over at once
	host     int           // that it hits
	lasts    time.Duration // at least
	restarts int           // of the job, that it costs
}

func describeFaults(list []randomFault) string {
	var what []string
	for _, f := range list {
		what = append(what, f.begin.what)
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
		if second := chooseFault(r, nodes, members); second.host != list[0].host && (nodes > 2 || second.host < 0 || list[0].host < 0) {
			return append(list, second)
		}
	}
}

func chooseFault(r *rand.Rand, nodes, members int) randomFault {
	node, member := r.IntN(nodes), r.IntN(members)
	fatal := []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGABRT}[r.IntN(3)]
	switch r.IntN(9) {
	case 0, 1:
		return randomFault{begin: killWorker(node, fatal), host: node, restarts: 1}
	case 2:
		return restartAgent(node, syscall.SIGKILL)
	case 3:
		return restartAgent(node, syscall.SIGTERM)
	case 4:
		return suspend(node, func(sig syscall.Signal) step { return signalAgent(sig, node) })
	case 5:
		return cutOff(node)
	case 6:
		begin, end := signalEtcd(syscall.SIGKILL, member), []step{memberGone(member), startEtcd(member)}
		return randomFault{begin: begin.named(begin.what + restarted), end: end, host: etcdHost(member)}
	case 7:
		return isolate(node, (node+1+r.IntN(nodes-1))%nodes, r.IntN(2) == 0)
	default:
		if r.IntN(2) == 0 {
			return cutOff(etcdHost(member))
		}
		return suspend(etcdHost(member), func(sig syscall.Signal) step { return signalEtcd(sig, member) })
	}
}

// restarted is what follows the words for the end of a process that is started again with the same command.
const restarted = ", which is started again"

func killWorker(node int, sig syscall.Signal) step {
	return act(fmt.Sprintf("%s to a worker of node %d", unix.SignalName(sig), node), func(d *drill) error {
		if list := d.live(node); len(list) > 0 { // another fault may have been faster
			_ = list[0].process.Signal(sig) // it may have ended
		}
		return nil
	})
}

func restartAgent(node int, sig syscall.Signal) randomFault {
	begin := signalAgent(sig, node)
	return randomFault{begin: begin.named(begin.what + restarted), end: []step{agentGone(node), start(node)}, host: node}
}

// suspend suspends the process on a host.
func suspend(host int, signal func(syscall.Signal) step) randomFault {
	return randomFault{begin: signal(syscall.SIGSTOP), end: []step{signal(syscall.SIGCONT)}, host: host}
}

func cutOff(host int) randomFault {
	return randomFault{begin: cut(host), end: []step{heal(host)}, host: host}
}

// isolate separates two nodes, while both reach all others: for a moment, or long enough for them to notice.
func isolate(node, other int, long bool) randomFault {
	what := fmt.Sprintf("nodes %d and %d lose each other", node, other)
	separate := func(_ context.Context, d *drill) error { return d.network.Isolate(node, other) }
	join := func(_ context.Context, d *drill) error { return d.network.Rejoin(node, other) }
	f := randomFault{begin: step{what, separate}, end: []step{{what + " no more", join}}, host: node}
	if long {
		f.begin.what += " for long"
		f.lasts = silenceTime + silenceTime/2 // until after it has been noticed
	}
	return f
}
