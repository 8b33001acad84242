package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/env/testing/testkit"
)

// follow is a worker that takes part by hand, and says what it learns of rounds until gorun stops it. The odd rank asks for no restart
// when a round has been over for a while.
func follow(ctx context.Context, odd int) error {
	conn, err := env.Connect(ctx, os.Getenv("GORUN_ROUND_SOCKET"))
	if err != nil {
		return err
	}
	for r := conn.Round; ; {
		if r.Over {
			var died []string
			for _, d := range r.Died {
				died = append(died, fmt.Sprintf("%d (%d, exit code %d): %s", d.Rank, d.LocalRank, d.ExitCode, d))
			}
			fmt.Printf("round %d is over: %s.\n", r.Round, strings.Join(died, "; "))
			if conn.Round.Env["RANK"] == strconv.Itoa(odd) {
				time.Sleep(time.Second / 2)
				os.Exit(agent.NoRestart)
			}
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

// stop ends all nodes together.
func stop(nodes ...*node) {
	for _, n := range nodes {
		n.signal(syscall.SIGTERM)
	}
	for _, n := range nodes {
		n.end(143)
	}
}

// workers reads until each of two workers of a node is in a round, and returns their pids by local rank.
func (n *node) workers(round, first, world int) (pids [2]int) {
	n.t.Helper()
	all := n.pids(round, first, len(pids), world)
	return [2]int{all[first], all[first+1]}
}

// TestGuardOfReplace: all workers of a node have one guard. A worker that replaces another one gets the same. If the
// guard is killed, all workers are, and are started again by another one.
func TestGuardOfReplace(t *testing.T) {
	t.Parallel()
	n := replacing(t, "--nproc-per-node=2", "--max-restarts=2")
	pids := n.workers(1, 0, 2)
	guard := parent(t, pids[0])
	kill(t, pids[1])
	now := n.workers(2, 0, 2)
	if now[0] != pids[0] || now[1] == pids[1] || parent(t, now[0]) != guard || parent(t, now[1]) != guard {
		t.Errorf("the workers were %v, with guard %d, and are %v, with %d", pids, guard, now, parent(t, now[1]))
	}
	kill(t, guard)
	last := n.workers(3, 0, 2)
	if last[0] == now[0] || last[1] == now[1] || parent(t, last[0]) == guard || parent(t, last[0]) != parent(t, last[1]) {
		t.Errorf("the workers were %v, and their guard %d was killed; now they are %v", now, guard, last)
	}
	stop(n)
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	p, ok := proc.Read(pid)
	if !ok {
		t.Fatalf("process %d has ended", pid)
	}
	return p.Parent
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// replacing starts gorun with workers that follow its rounds.
func replacing(t *testing.T, flags ...string) *node {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startNode(t, append(append([]string{"--on-failure=replace"}, flags...), "bash", "-c", "exec -a ranks "+exe+" follows")...)
}

// TestStrangerAtTheSocket: a process that the worker has not started learns nothing, and the job goes on.
func TestStrangerAtTheSocket(t *testing.T) {
	t.Parallel()
	n := replacing(t, "--nproc-per-node=2", "--max-restarts=1")
	before := n.workers(1, 0, 2)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", before[0]))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(environ), "GORUN_ROUND_SOCKET=")
	path, _, _ := strings.Cut(after, "\x00")
	for range 3 {
		if _, err := env.Connect(t.Context(), path); err == nil {
			t.Error("a stranger is told of the round")
		}
	}
	n.expect(`WARN\]  gorun: rank 0 \(local rank 0\): refuses a connection: it comes from a process that the worker has not started$`)
	kill(t, before[1])
	if now := n.workers(2, 0, 2); now[0] != before[0] {
		t.Errorf("the workers were %v, and are %v", before, now)
	}
	n.signal(syscall.SIGTERM)
	if said := n.end(143); strings.Count(said, "refuses a connection") != 1 {
		t.Errorf("it says %s", said)
	}
}

// TestFrozenWorker: a worker stops for ever. The others wait for it for less than --replace-timeout, here and in the next round. Then it is
// killed and started again, so two restarts are enough, also for the rank that serves the store.
func TestFrozenWorker(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, frozen := range testkit.UnlessShort([]string{"0", "1"}, []string{"0"}) {
		n := startNode(t, "--nproc-per-node=3", "--max-restarts=2", "--on-failure=replace", "bash", "-c", "exec -a ranks "+exe+" freezes "+frozen)
		n.expect("revoked its round: .*rank " + frozen + " .*restart 1 of 2")
		n.expect(`rank ` + frozen + ` \(local rank ` + frozen + `\) is killed: it has not entered round 2, and rank [012] has given it up$`)
		n.expect("rank " + frozen + " on .*has given it up; restart 2 of 2")
		for range 3 {
			n.expect(`\] done in round 3$`)
		}
		n.end(0)
	}
}

// TestNoRestartWithSurvivors: the exit code that refuses restarts ends the job, and the others with it.
func TestNoRestartWithSurvivors(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t, "--nproc-per-node=3", "--max-restarts=5", "--on-failure=replace", "bash", "-c",
		"test $RANK = 1 && { sleep 0.3; exit 93; }; exec -a ranks "+exe+" follows")
	if said := n.end(93); strings.Contains(said, "in round 2") || !strings.Contains(said, "rank      : 1 (local_rank: 1)\n  exitcode  : 93 ") {
		t.Errorf("it says %s", said)
	}
}

// awaitGone waits until processes are gone.
func awaitGone(t *testing.T, pids ...int) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		left := slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { p, ok := proc.Read(pid); return !ok || p.Zombie })
		if len(left) == 0 {
			return
		}
		if time.Since(begun) > patience {
			t.Fatalf("processes %v are left", left)
		}
	}
}

// pids reads until n workers with ranks from first are in a round of a world, and returns their pids by rank.
func (n *node) pids(round, first, workers, world int) map[int]int {
	n.t.Helper()
	pids := make(map[int]int)
	for len(pids) < workers {
		rank, pid, _ := n.worker(fmt.Sprintf(`pid \d+ is rank \d+ of %d in round %d,`, world, round))
		if rank < first || rank >= first+workers {
			n.t.Fatalf("%s: want a rank from %d", n.said.Text(), first)
		}
		pids[rank] = pid
	}
	return pids
}

// worker reads until a worker that says so is in a round.
func (n *node) worker(pattern string) (rank, pid, round int) {
	n.t.Helper()
	n.expect(pattern)
	_, line, _ := strings.Cut(n.said.Text(), "pid ")
	var world int
	if _, err := fmt.Sscanf(line, "%d is rank %d of %d in round %d", &pid, &rank, &world, &round); err != nil {
		n.t.Fatalf("%s: %v", n.said.Text(), err)
	}
	if prefix := fmt.Sprintf("[%d] ", rank); !strings.HasPrefix(n.said.Text(), prefix) {
		n.t.Errorf("%s: want %s in front", n.said.Text(), prefix)
	}
	return rank, pid, round
}

// settled reads until all workers of a node are in one round after the first, among them one that lives on, and none that was killed: on a busy
// machine, such a one may enter a round before it is gone. It returns their pids by rank.
func (n *node) settled(world, survivor int, killed ...int) (pids map[int]int, round int) {
	n.t.Helper()
	workers := 2 // of one of two nodes
	if world == 3 {
		workers = 3
	}
	in := make(map[int]map[int]int)
	for {
		rank, pid, round := n.worker(fmt.Sprintf(`pid \d+ is rank \d+ of %d in round \d+,`, world))
		if in[round] == nil {
			in[round] = make(map[int]int)
		}
		in[round][rank] = pid
		alive := !slices.ContainsFunc(slices.Collect(maps.Values(in[round])), func(pid int) bool {
			p, ok := proc.Read(pid)
			return !ok || p.Zombie || slices.Contains(killed, pid)
		})
		if round > 1 && len(in[round]) == workers && alive {
			if !slices.Contains(slices.Collect(maps.Values(in[round])), survivor) {
				n.t.Errorf("in round %d there are %v, and not %d", round, in[round], survivor)
			}
			return in[round], round
		}
	}
}
