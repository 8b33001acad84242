package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/rounds"
	"github.com/gorun/gorun/launcher/proc"
)

// follow is a worker that takes part by hand, and says what it learns of rounds until gorun stops it.
func follow(ctx context.Context) error {
	conn, err := rounds.Connect(ctx, os.Getenv("GORUN_ROUND_SOCKET"))
	if err != nil {
		return err
	}
	for r := conn.Round; ; {
		if r.Over {
			var died []string
			for _, d := range r.Died {
				died = append(died, fmt.Sprintf("%d (%d, exit code %d): %s", d.Rank, d.LocalRank, d.ExitCode, d.Reason))
			}
			fmt.Printf("round %d is over: %s.\n", r.Round, strings.Join(died, "; "))
		} else {
			fmt.Printf("pid %d is rank %s of %s in round %d, node %s; died: %d\n", os.Getpid(), r.Env["RANK"], r.Env["WORLD_SIZE"], r.Round, r.Env["GROUP_RANK"], len(r.Died))
			if r.Round != conn.Round.Round {
				if err := conn.Enter(r.Round); err != nil {
					return err
				}
			}
		}
		if r, err = conn.Next(); err != nil {
			return err
		}
	}
}

// A replacing job is one of several nodes with an etcd of its own, whose workers follow its rounds.
type replacingJob struct {
	t    *testing.T
	args []string
}

func newReplacingJob(t *testing.T, nnodes, conf string, more ...string) *replacingJob {
	t.Helper()
	endpoint, token := "--rdzv-endpoint="+loopback(t, 1), "--rdzv-token-file="+tokenFile(t, secretToken)
	startNodeFor(t, 4*patience, "etcd", endpoint, token).expect("serving: ")
	args := []string{"--nnodes=" + nnodes, "--nproc-per-node=2", "--on-failure=replace", "--rdzv-backend=etcd", "--rdzv-id=j", endpoint, token, "--rdzv-conf=ttl=20," + conf}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args = append(append(args, more...), "bash", "-c", "exec -a ranks "+exe+" follows")
	return &replacingJob{t, args}
}

func (j *replacingJob) start() *node {
	j.t.Helper()
	return startNode(j.t, j.args...)
}

// name is how the rendezvous names a node: HOST/PID.
func (n *node) name() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, n.cmd.Process.Pid)
}

// stop ends all nodes together.
func stop(nodes ...*node) {
	for _, n := range nodes {
		n.signal(syscall.SIGTERM)
	}
	for _, n := range nodes {
		n.end(143)
	}
}

// workers reads until each worker of a node is in a round, and returns their pids by local rank.
func (n *node) workers(round, first, world int) (pids [2]int) {
	n.t.Helper()
	for seen := 0; seen < len(pids); {
		n.expect(fmt.Sprintf(`pid \d+ is rank \d+ of %d in round %d,`, world, round))
		_, line, _ := strings.Cut(n.said.Text(), "pid ")
		var pid, rank int
		if _, err := fmt.Sscanf(line, "%d is rank %d ", &pid, &rank); err != nil || rank < first || rank >= first+len(pids) {
			n.t.Fatalf("%s: want ranks %d and %d: %v", n.said.Text(), first, first+1, err)
		}
		pids[rank-first] = pid
		seen++
	}
	return pids
}

// gone is what workers say when the round is over because a node of rank 2 and 3 is gone.
func gone(round int, n *node, how string) string {
	its := regexp.QuoteMeta("its node " + n.name() + " " + how)
	return fmt.Sprintf(`round %d is over: 2 \(0, exit code 0\): %s; 3 \(1, exit code 0\): %s\.$`, round, its, its)
}

// TestSpareReplacesNode: a spare takes the ranks of a node whose agent is killed, and the workers of the other node live on.
func TestSpareReplacesNode(t *testing.T) {
	t.Parallel()
	j := newReplacingJob(t, "2", "ttl=20,join_timeout=60")
	a := j.start()
	a.expect("waiting: ")
	b := j.start()
	before := a.workers(1, 0, 4)
	b.workers(1, 2, 4)
	spare := j.start()
	spare.expect("waiting: .*spares: 1")
	b.signal(syscall.SIGKILL)
	b.end(-1)
	a.expect(gone(1, b, "is lost"))
	a.expect("going on in another round: " + b.name() + " is lost$")
	if after := a.workers(2, 0, 4); after != before {
		t.Errorf("the workers were %v, and are %v", before, after)
	}
	spare.workers(2, 2, 4)
	stop(a, spare)
}

// TestWorldShrinksAndGrows: a node leaves, and another one comes, and the workers of the first node live on in worlds of other sizes.
func TestWorldShrinksAndGrows(t *testing.T) {
	t.Parallel()
	j := newReplacingJob(t, "1:2", "ttl=20,join_timeout=60,last_call_timeout=1")
	a := j.start()
	before := a.workers(1, 0, 2)
	b := j.start()
	a.expect(`round 1 is over: \.$`)
	if after := a.workers(2, 0, 4); after != before {
		t.Errorf("the workers were %v, and are %v", before, after)
	}
	b.workers(2, 2, 4)
	stop(b)
	a.expect(gone(2, b, "has left: stopped by signal 15 (SIGTERM)"))
	if after := a.workers(3, 0, 2); after != before {
		t.Errorf("the workers were %v, and are %v", before, after)
	}
	stop(a)
}

// TestLeaderIsReplaced: the node that leads is killed, which is that of rank 0.
func TestLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	j := newReplacingJob(t, "1:2", "ttl=20,join_timeout=60,last_call_timeout=2")
	a := j.start()
	a.workers(1, 0, 2)
	b := j.start()
	a.workers(2, 0, 4)
	before := b.workers(2, 2, 4)
	a.signal(syscall.SIGKILL)
	a.end(-1)
	b.expect(`round 2 is over: 0 \(0, exit code 0\): its node .* is lost; 1 \(1, `)
	if after := b.workers(3, 0, 2); after != before {
		t.Errorf("the workers were %v, and are %v", before, after)
	}
	stop(b)
}

// TestSurvivorsWaitForNode: too few nodes are left, and the workers wait for another one, or until there has been time enough.
func TestSurvivorsWaitForNode(t *testing.T) {
	t.Parallel()
	j := newReplacingJob(t, "2", "ttl=20,join_timeout=8")
	a := j.start()
	a.expect("waiting: ")
	b := j.start()
	before := a.workers(1, 0, 4)
	b.workers(1, 2, 4)
	b.signal(syscall.SIGKILL)
	b.end(-1)
	a.expect(gone(1, b, "is lost"))
	b = j.start()
	if after := a.workers(2, 0, 4); after != before {
		t.Errorf("the workers were %v, and are %v", before, after)
	}
	b.workers(2, 2, 4)
	b.signal(syscall.SIGKILL)
	b.end(-1)
	a.expect(gone(2, b, "is lost"))
	want := "gorun: the job is closed: round 3: 1 of 2 nodes after 8s; " + b.name() + " is gone\n"
	if said := a.end(75); !strings.HasSuffix(said, want) {
		t.Errorf("it says %s, want %s at the end", said, want)
	}
}

// TestSilentNodeComesBack: an agent is stopped until the others have given it up. Its workers live on as well, and join the next round.
func TestSilentNodeComesBack(t *testing.T) {
	t.Parallel()
	j := newReplacingJob(t, "1:2", "ttl=2,join_timeout=60,last_call_timeout=2")
	a := j.start()
	a.workers(1, 0, 2)
	b := j.start()
	before := a.workers(2, 0, 4)
	others := b.workers(2, 2, 4)
	b.signal(syscall.SIGSTOP)
	a.expect(gone(2, b, "is lost"))
	if after := a.workers(3, 0, 2); after != before {
		t.Errorf("the workers were %v, and are %v", before, after)
	}
	b.signal(syscall.SIGCONT)
	b.expect(`round 2 is over: \.$`)
	if after := a.workers(4, 0, 4); after != before {
		t.Errorf("the workers were %v, and are %v", before, after)
	}
	if after := b.workers(4, 2, 4); after != others {
		t.Errorf("the workers of the node that was lost were %v, and are %v", others, after)
	}
	stop(a, b)
}

// spareGuard waits until a gorun has a guard without workers, beside the one that removes its files, which is older.
func spareGuard(t *testing.T, gorun int) int {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(5 * time.Millisecond) {
		all := proc.All()
		parents := make(map[int]bool)
		for _, p := range all {
			parents[p.Parent] = true
		}
		free := slices.DeleteFunc(all, func(p proc.Process) bool {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid)) // it may have ended
			return p.Parent != gorun || parents[p.Pid] || !strings.HasPrefix(string(name), "gorun-guard")
		})
		if len(free) == 2 {
			return slices.MaxFunc(free, func(a, b proc.Process) int {
				return cmp.Or(cmp.Compare(a.StartTicks, b.StartTicks), cmp.Compare(a.Pid, b.Pid))
			}).Pid
		}
	}
	t.Fatal("there is no guard without workers")
	return 0
}

// TestSpareGuard: a worker that replaces another one gets a guard that is there, or a new one if that has died.
func TestSpareGuard(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t, "--nproc-per-node=2", "--max-restarts=2", "--on-failure=replace", "bash", "-c", "exec -a ranks "+exe+" follows")
	pids := n.workers(1, 0, 2)
	for round := 2; round <= 3; round++ {
		spare := spareGuard(t, n.cmd.Process.Pid)
		if round == 3 {
			kill(t, spare)
		}
		kill(t, pids[1])
		now := n.workers(round, 0, 2)
		p, ok := proc.Read(now[1])
		if now[0] != pids[0] || now[1] == pids[1] || !ok || (p.Parent == spare) != (round == 2) {
			t.Errorf("round %d: the workers were %v, and are %v; the parent of the new one is %d, there was guard %d", round, pids, now, p.Parent, spare)
		}
		pids = now
	}
	stop(n)
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
