package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/hosts"
)

// An apartJob has each node on a host of its own, named node0 and so on, and an etcd on another. Some of the hosts lose each other,
// and nobody loses the etcd.
type apartJob struct {
	t       *testing.T
	network *hosts.Network
	args    []string
	nodes   map[int]*node
	release release
}

const etcdAlone = -1 // number of the host that has the etcd

// newApartJob prepares a job whose workers run one of the rankPrograms, until the file j.release is there.
func newApartJob(t *testing.T, nnodes string, maxRestarts int, program string) *apartJob {
	t.Helper()
	skipIfShort(t, "to lose each other takes half a minute")
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip(err)
	}
	network := newNetwork(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	j := &apartJob{t: t, network: network, nodes: make(map[int]*node), release: newRelease(t)}
	endpoint, token := "--rdzv-endpoint="+hosts.Addr(etcdAlone)+":2379", "--rdzv-token-file="+tokenFile(t, secretToken)
	j.args = []string{
		unshare, "--uts", "bash", "-c", "hostname $0 && exec -a gorun " + exe + ` "$@"`, "HOST",
		"--nnodes=" + nnodes, fmt.Sprint("--max-restarts=", maxRestarts), "--rdzv-backend=etcd", "--rdzv-id=apart", endpoint, token, "--rdzv-conf=ttl=4,last_call_timeout=3",
		"bash", "-c", "exec -a ranks " + exe + " " + program + " " + string(j.release),
	}
	j.start(etcdAlone, unshare, "bash", "-c", "exec -a gorun "+exe+` "$@"`, "bash", "etcd", endpoint, token)
	j.nodes[etcdAlone].expect("serving: ")
	return j
}

func (j *apartJob) start(host int, args ...string) {
	j.t.Helper()
	start := func(cmd *exec.Cmd) error { return j.network.Start(cmd, host) }
	j.nodes[host] = startBy(j.t, start, 4*patience, args[0], args...)
}

// join starts nodes, which ask for the node rank that their host has.
func (j *apartJob) join(list ...int) {
	j.t.Helper()
	for _, host := range list {
		args := append([]string(nil), j.args...)
		args[5] = fmt.Sprint("node", host)
		rank := append(args[:6:6], fmt.Sprint("--node-rank=", host))
		j.start(host, append(rank, args[6:]...)...)
	}
}

// up waits until the workers of these nodes compute together.
func (j *apartJob) up(round int, list ...int) {
	j.t.Helper()
	for _, host := range list {
		j.nodes[host].expect(fmt.Sprintf("up: %d ranks in round %d,", len(list), round))
	}
}

func (j *apartJob) check(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// finish lets all workers end, and returns what each node has said.
func (j *apartJob) finish() map[int]string {
	j.t.Helper()
	j.release.create(j.t)
	said := make(map[int]string)
	for host, n := range j.nodes {
		if host != etcdAlone {
			said[host] = n.end(0)
		}
	}
	return said
}

// wantSaid wants a line with all parts.
func wantSaid(t *testing.T, who int, said string, parts ...string) {
	t.Helper()
	for line := range strings.Lines(said) {
		has := true
		for _, part := range parts {
			has = has && strings.Contains(line, part)
		}
		if has {
			return
		}
	}
	t.Errorf("node %d has no line with %q; it says\n%s", who, parts, said)
}

// TestNodesLoseEachOther where there is room for one less: the one with the lower rank goes on with all others, the other says why
// it waits, and comes back when they reach each other. That uses up no restart.
func TestNodesLoseEachOther(t *testing.T) {
	t.Parallel()
	j := newApartJob(t, "2:3", 0, "patient")
	j.join(0, 1, 2)
	j.up(1, 0, 1, 2)
	j.check(j.network.Isolate(1, 2))
	begun := time.Now()
	j.up(2, 0, 1)
	t.Logf("the others go on after %v", time.Since(begun).Round(time.Second))
	j.nodes[2].expect("waiting: round 2 is running with 2 of 2 to 3 nodes; .*cannot reach")
	j.check(j.network.Rejoin(1, 2))
	j.up(3, 0, 1, 2)
	said := j.finish()
	for host := range 2 {
		wantSaid(t, host, said[host], "node1/", " cannot reach node", " at 10.77.0.", "; going on without node2/")
	}
}

// TestNodesLoseEachOtherWithoutRoom: the job waits, says so, and goes on when they reach each other.
func TestNodesLoseEachOtherWithoutRoom(t *testing.T) {
	t.Parallel()
	j := newApartJob(t, "2", 0, "patient")
	j.join(0, 1)
	j.up(1, 0, 1)
	j.check(j.network.Isolate(0, 1))
	for host := range 2 {
		j.nodes[host].expect("waiting: round 2: 2 of 2 nodes; .*cannot reach node")
	}
	j.check(j.network.Rejoin(0, 1))
	j.up(2, 0, 1)
	j.finish()
}

// TestProgramsThatGiveUpEarly: workers without package comm fail when they have not heard of each other for three seconds, and name
// nobody. That uses up no restart either.
func TestProgramsThatGiveUpEarly(t *testing.T) {
	t.Parallel()
	for maxRestarts := range 2 {
		t.Run(fmt.Sprint("restarts ", maxRestarts), func(t *testing.T) {
			t.Parallel()
			j := newApartJob(t, "2:3", maxRestarts, "pings")
			j.args[4] = strings.Replace(j.args[4], "exec", "LOGLEVEL=debug exec", 1)
			j.join(0, 1, 2)
			j.nodes[1].expect("reaches node2 at ")
			j.nodes[2].expect("reaches node1 at ")
			j.nodes[0].expect("up: 3 ranks in round 1,")
			j.check(j.network.Isolate(1, 2))
			begun := time.Now()
			for host := range 2 {
				j.nodes[host].expect("up: 2 ranks in round 2, restarts: 0")
			}
			t.Logf("the others go on after %v", time.Since(begun).Round(100*time.Millisecond))
			j.nodes[2].expect("waiting: round 2 is running with 2 of 2 to 3 nodes; .*cannot reach")
			j.check(j.network.Rejoin(1, 2))
			for host := range 3 {
				j.nodes[host].expect("up: 3 ranks in round 3, restarts: 0")
			}
			said := j.finish()
			for host := range 2 {
				wantSaid(t, host, said[host], " cannot reach node", " at 10.77.0.", "; going on without node2/")
			}
		})
	}
}

// TestNodesNeverReachEachOther: it is told after a second whom a rank waits for. The round ends when it has waited for half a
// minute, which uses up no restart.
func TestNodesNeverReachEachOther(t *testing.T) {
	t.Parallel()
	j := newApartJob(t, "2:3", 0, "patient")
	j.check(j.network.Isolate(1, 2))
	j.join(0, 1, 2)
	j.nodes[1].expect("WARN waiting for a connection to_rank=2 at=" + hosts.Addr(2) + ":")
	j.up(2, 0, 1)
	j.nodes[2].expect("waiting: round 2 is running with 2 of 2 to 3 nodes; .*cannot reach")
	j.check(j.network.Rejoin(1, 2))
	j.up(3, 0, 1, 2)
	j.finish()
}

// TestNewcomerTakesRankZeroUnreached: a member that cannot reach it does not end. The newcomer waits.
func TestNewcomerTakesRankZeroUnreached(t *testing.T) {
	t.Parallel()
	j := newApartJob(t, "2:3", 0, "patient")
	j.join(1, 2)
	j.up(1, 1, 2)
	j.check(j.network.Isolate(0, 1))
	j.join(0)
	j.up(3, 1, 2)
	j.nodes[0].expect("waiting: round 3 is running with 2 of 2 to 3 nodes; .*cannot reach node0")
	j.check(j.network.Rejoin(0, 1))
	j.up(4, 0, 1, 2)
	j.finish()
}

// pingUntil sends datagrams to the other ranks, one on each host, and fails when nothing has come from one of them for three seconds.
// It ends when the file is there.
func pingUntil(ctx context.Context, file string) error {
	const port, interval, patience = 7000, 100 * time.Millisecond, 3 * time.Second
	round := os.Getenv("GORUN_ROUND")
	rank, err := strconv.Atoi(os.Getenv("RANK"))
	size, sizeErr := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	if err := errors.Join(err, sizeErr); err != nil {
		return err
	}
	conn, err := new(net.ListenConfig).ListenPacket(ctx, "udp", fmt.Sprint(":", port))
	if err != nil {
		return err
	}
	heard, up := make([]time.Time, size), false
	begun, seen := time.Now(), make(map[int]bool)
	for i := range heard {
		heard[i] = begun
	}
	for text := make([]byte, 100); ; {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
		heard[rank], seen[rank] = time.Now(), true
		for other := range heard {
			if time.Since(heard[other]) > patience {
				return fmt.Errorf("rank %d has heard nothing of rank %d for %v", rank, other, patience)
			}
			to := &net.UDPAddr{IP: net.ParseIP(hosts.Addr(other)), Port: port}
			_, _ = conn.WriteTo(fmt.Appendf(nil, "%s %d", round, rank), to) // it may be lost
		}
		if len(seen) == size && !up {
			up = true
			fmt.Printf("up: %d ranks in round %s, restarts: %s\n", size, round, os.Getenv("TORCHELASTIC_RESTART_COUNT"))
		}
		for next := time.Now().Add(interval); conn.SetReadDeadline(next) == nil; {
			n, _, err := conn.ReadFrom(text)
			if err != nil {
				break
			}
			var its string
			var from int
			if _, err := fmt.Sscan(string(text[:n]), &its, &from); err == nil && its == round && from < size {
				heard[from], seen[from] = time.Now(), true
			}
		}
	}
}
