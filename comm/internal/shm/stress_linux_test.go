package shm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/shm/heap"
	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/wait"
	"github.com/gorun/gorun/env/testing/testkit"
)

// Processes that share a segment make random calls, with random delays, and check every result. The scheduler of schedule_test.go
// goes through more orders; this test has the real processors, sizes and system calls.

var (
	stressFor  = flag.Duration("stress.for", 3*time.Second, "how long processes make calls, in all")
	stressSeed = flag.Uint64("stress.seed", 0, "what they call; 0: something else each time")
	stressExec = flag.String("stress.exec", "", "what runs the test's program, if the system does not")
)

// A stress is what every rank has to know.
type stress struct {
	Ranks, Me int
	CPUs      int
	Seed      uint64
	For       time.Duration
	Addresses []string // of the ranks' acceptors
}

// asStressed is the environment variable by which a process learns that it is a rank of a stress.
const asStressed = "SHM_TEST_STRESS"

// The descriptors of a rank of a stress, after the first three.
const (
	stressSegment = 3 + iota
	stressSays
	stressHears
)

func TestStress(t *testing.T) {
	shapes := []struct{ ranks, cpus int }{{2, 2}, {2, 1}, {3, 64}, {4, 2}}
	for _, shape := range shapes {
		t.Run(fmt.Sprintf("%d ranks, %d processors", shape.ranks, shape.cpus), func(t *testing.T) {
			seed := *stressSeed
			if seed == 0 {
				seed = testkit.Seed()
			}
			t.Logf("-stress.seed %d", seed)
			stressed(t, stress{Ranks: shape.ranks, CPUs: shape.cpus, Seed: seed, For: *stressFor / time.Duration(len(shapes))})
		})
	}
}

// stressed runs the ranks of s. When one fails, the others are killed.
func stressed(t *testing.T, s stress) {
	memory, err := segment.Create(Size(s.Ranks))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = memory.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ranks sync.WaitGroup
	says, answers := make([]*bufio.Reader, s.Ranks), make([]*os.File, s.Ranks)
	for r := range s.Ranks {
		says0, says1 := pipe(t)
		hears0, hears1 := pipe(t)
		says[r], answers[r] = bufio.NewReader(says0), hears1
		s.Me = r
		about, _ := json.Marshal(s)
		args := []string{os.Args[0], "-test.run=^TestStressedRank$", "-test.timeout=10m"}
		if *stressExec != "" {
			args = append([]string{*stressExec}, args...)
		}
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), asStressed+"="+string(about))
		cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(dup(t, memory.FD())), "segment"), says1, hears0}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for _, f := range cmd.ExtraFiles {
			_ = f.Close()
		}
		ranks.Go(func() {
			if err := cmd.Wait(); err != nil && ctx.Err() == nil {
				t.Errorf("rank %d: %v\n%s", r, err, &out)
				cancel()
			}
		})
	}
	for r := range says {
		address, err := says[r].ReadString('\n')
		if err != nil {
			t.Errorf("rank %d says nothing: %v", r, err)
			cancel()
		}
		s.Addresses = append(s.Addresses, strings.TrimSpace(address))
	}
	for _, f := range answers {
		_ = json.NewEncoder(f).Encode(s.Addresses)
	}
	ranks.Wait()
}

func pipe(t *testing.T) (r, w *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// TestStressedRank is a rank of TestStress.
func TestStressedRank(t *testing.T) {
	var s stress
	about := os.Getenv(asStressed)
	if about == "" {
		t.Skip("it is part of TestStress")
	}
	if err := json.Unmarshal([]byte(about), &s); err != nil {
		t.Fatal(err)
	}
	h, a := newHeap(t)
	says, hears := os.NewFile(stressSays, "says"), os.NewFile(stressHears, "hears")
	if _, err := fmt.Fprintln(says, a.Address()); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(hears).Decode(&s.Addresses); err != nil {
		t.Fatal(err)
	}
	memory, err := segment.Open(stressSegment, Size(s.Ranks))
	if err != nil {
		t.Fatal(err)
	}
	ways := choice.Chooser{Table: choice.SharedMemory}
	if s.CPUs >= s.Ranks {
		ways.Table = choice.OwnProcessors
	}
	team, err := New(memory, s.Ranks, s.Me, wait.Processors{CPUs: s.CPUs, Ranks: s.Ranks}, ways, sleeping)
	if err != nil {
		t.Fatal(err)
	}
	team.Share(context.Background(), h, s.Addresses)
	if err := s.calls(t, team, h); err != nil {
		t.Fatal(err)
	}
}

// calls makes calls until rank 0 ends that, which it broadcasts after so many calls each time.
func (s *stress) calls(t *testing.T, team *Team, h *heap.Heap) error {
	const between = 50
	rng, mine := rand.New(rand.NewPCG(s.Seed, 0)), rand.New(rand.NewPCG(s.Seed, uint64(s.Me+1)))
	end := time.Now().Add(s.For)
	for seq := uint64(1); ; seq++ {
		beginStressed(team, seq)
		if seq%between == 0 {
			on := []byte{0}
			if time.Now().Before(end) {
				on[0] = 1
			}
			if err := team.Broadcast(on, 0); err != nil || on[0] == 0 {
				return err
			}
			continue
		}
		op := operations[rng.IntN(len(operations))]
		size, root, who := rng.IntN(1<<rng.IntN(18)), rng.IntN(s.Ranks), rng.IntN(1<<s.Ranks)
		if op.name == "one after the other" { // not of teams that share
			op = operations[0]
		}
		delay(mine)
		put, free := placeBuffers(t, h, who>>s.Me&1 != 0, mine.IntN(100))
		err := op.run(team, put, seq, size, root, reductions[[]string{"sum", "compose", "fold"}[rng.IntN(3)]])
		free()
		if err != nil {
			return fmt.Errorf("call %d, %s of %d bytes with root %d: %w", seq, op.name, size, root, err)
		}
	}
}

func schedYield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// delay lets others go first, sometimes.
func delay(rng *rand.Rand) {
	switch rng.IntN(20) {
	case 0:
		for until := time.Now().Add(time.Duration(rng.IntN(50)) * time.Microsecond); time.Now().Before(until); {
			runtime.Gosched()
		}
	case 1:
		schedYield()
	case 2:
		if rng.IntN(10) == 0 {
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Microsecond)
		}
	}
}

// beginStressed starts call number seq.
func beginStressed(t *Team, seq uint64) { t.Begin(seq, Call{What: seq}, seq<<32) }
