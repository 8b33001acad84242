package comm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// asWorker names the program that the test binary is when it runs as a worker process.
const asWorker = "COMM_TEST_WORKER"

// initFile names the file in which worker processes meet, if they do.
const initFile = "COMM_TEST_FILE"

var workerPrograms = map[string]func(ctx context.Context, g *Group) error{
	// loop reduces until something fails, and says so when it has begun.
	"loop": func(ctx context.Context, g *Group) error {
		for i := 0; ; i++ {
			if err := AllReduce(ctx, g, make([]float32, 100_000), Sum); err != nil {
				return err
			}
			if i == 10 {
				fmt.Println("running")
			}
		}
	},
	// shared loop is loop with buffers that ranks share.
	"shared loop": func(ctx context.Context, g *Group) error {
		buf, err := Alloc[float32](g, 1<<20)
		if err != nil {
			return err
		}
		for i := 0; ; i++ {
			if err := AllReduce(ctx, g, buf, Sum); err != nil {
				return err
			}
			if i == 10 {
				fmt.Println("running")
			}
		}
	},
	// flood sends from rank 0 to rank 1 until something fails.
	"flood": func(ctx context.Context, g *Group) error {
		one, err := NewGroup(ctx, g, []int{0, 1}, WithTimeout(time.Second))
		if err != nil {
			return err
		}
		for i := 0; ; i++ {
			if g.Rank() == 1 {
				_, err = Recv(ctx, one, make([]byte, 60_000), 0)
			} else {
				err = Send(ctx, one, make([]byte, 60_000), 1)
			}
			if err != nil {
				return err
			}
			if i == 10 {
				fmt.Println("running")
			}
		}
	},
	// pairs exchanges messages in groups of two neighbours, until something fails: then it ends, as programs do.
	"pairs": func(ctx context.Context, g *Group) error {
		n := g.Size()
		var pairs []*Group
		for i := range 2 {
			pair, err := Split(ctx, g, (g.Rank()+i)%n/2, g.Rank())
			if err != nil {
				return err
			}
			pairs = append(pairs, pair)
		}
		for i := 0; ; i++ {
			for _, pair := range pairs {
				other := 1 - pair.Rank()
				out := ISend(pair, make([]byte, 1000), other)
				_, err := Recv(ctx, pair, make([]byte, 1000), other)
				if err = errors.Join(err, out.Wait(ctx)); err != nil {
					fmt.Fprintln(os.Stderr, strings.SplitN(err.Error(), "\n", 2)[0])
					os.Exit(1)
				}
			}
			if i == 10 {
				fmt.Println("running")
			}
		}
	},
	// hang lets rank 0 wait for what rank 1 never sends.
	"hang": func(ctx context.Context, g *Group) error {
		fmt.Println("running")
		if g.Rank() == 1 {
			<-ctx.Done()
		}
		return AllReduce(ctx, g, []int{1}, Sum)
	},
	"sum": printSum,
	// silent computes one sum and returns from main without closing anything.
	"silent": func(ctx context.Context, g *Group) error {
		err := printSum(ctx, g)
		if err == nil {
			os.Exit(0)
		}
		return err
	},
}

func printSum(ctx context.Context, g *Group) error {
	v := []int{g.Rank()}
	if err := AllReduce(ctx, g, v, Sum); err != nil {
		return err
	}
	fmt.Println("sum", v[0])
	return nil
}

// onlyErrors leaves out for whom Init waits where the machine is slow.
type onlyErrors struct{}

func (onlyErrors) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("INFO comm: Init waits for ")) {
		return len(line), nil
	}
	return os.Stderr.Write(line)
}

// runWorker is main of a worker process; it prints its error as users' programs do.
func runWorker(program string) int {
	log.SetOutput(onlyErrors{})
	ctx := context.Background()
	options := []Option{WithTimeout(30 * time.Second)}
	if path := os.Getenv(initFile); path != "" {
		options = append(options, WithInitMethod("file://"+path))
	}
	g, err := Init(ctx, options...)
	if err == nil {
		err = errors.Join(workerPrograms[program](ctx, g), g.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A rankProcess is a rank in a process of its own.
type rankProcess struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// startProcesses starts size worker processes that meet at a free port, as torchrun or a shell would.
func startProcesses(t *testing.T, program string, size int) []*rankProcess {
	t.Helper()
	return startProcessesAs(t, program, size, func(int, *exec.Cmd) {})
}

// startProcessesAs is startProcesses of commands that change has had a look at. Where the system refuses them the test
// is skipped.
func startProcessesAs(t *testing.T, program string, size int, change func(rank int, cmd *exec.Cmd)) []*rankProcess {
	t.Helper()
	testkit.WithoutRace(t)
	host, port, err := net.SplitHostPort(testkit.ReservedAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	ps := make([]*rankProcess, size)
	for r := range ps {
		p := &rankProcess{cmd: exec.CommandContext(t.Context(), os.Args[0])}
		p.cmd.Env = append(os.Environ(), asWorker+"="+program,
			"RANK="+strconv.Itoa(r), "WORLD_SIZE="+strconv.Itoa(size), "MASTER_ADDR="+host, "MASTER_PORT="+port)
		p.cmd.Stderr = &p.stderr
		out, err := p.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		p.stdout = bufio.NewReader(out)
		change(r, p.cmd)
		if err := p.cmd.Start(); errors.Is(err, syscall.EPERM) {
			testkit.Cannot(t, "namespaces cannot be made here: %v", err)
		} else if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
		ps[r] = p
	}
	return ps
}

func TestAKilledProcessIsNamedByAllOthers(t *testing.T) {
	for _, program := range []string{"loop", "shared loop"} {
		t.Run(program, func(t *testing.T) {
			wantKilledNamed(t, startProcesses(t, program, 4), "died")
		})
	}
	if left, err := filepath.Glob("/dev/shm/*gorun*"); len(left) > 0 || err != nil {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// wantKilledNamed kills one of the processes, which have the program "loop" or one that says the same, and wants all others to say at once
// what has happened to it.
func wantKilledNamed(t *testing.T, ps []*rankProcess, what string) {
	t.Helper()
	victim := len(ps) / 2
	if line, err := ps[victim].stdout.ReadString('\n'); line != "running\n" {
		t.Fatalf("rank %d says %q, %v", victim, line, err)
	}
	if err := ps[victim].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for r, p := range ps {
		_, _ = io.Copy(io.Discard, p.stdout)
		err := p.cmd.Wait()
		if r == victim {
			continue
		}
		want := fmt.Sprintf(": rank %d (pid %d on %s): %s\n", victim, ps[victim].cmd.Process.Pid, hostname(t), what)
		got := p.stderr.String()
		if err == nil || !strings.HasSuffix(got, want) || !strings.HasPrefix(got, "comm: AllReduce #") || strings.Count(got, "\n") != 1 {
			t.Errorf("rank %d ended with %v and said %q, want one line with %q", r, err, got, want)
		}
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("the others took %v to notice", d)
	}
}

// One process is killed, and the others end one after the other, as each has a group with its neighbours alone: all of
// them name the first.
func TestAKilledProcessIsNamedAcrossGroups(t *testing.T) {
	const size, victim = 16, 6
	ps := startProcesses(t, "pairs", size)
	if line, err := ps[victim].stdout.ReadString('\n'); line != "running\n" {
		t.Fatalf("rank %d says %q, %v", victim, line, err)
	}
	if err := ps[victim].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for r, p := range ps {
		_, _ = io.Copy(io.Discard, p.stdout)
		err := p.cmd.Wait()
		want := fmt.Sprintf("rank %d (pid %d on %s): died\n", victim, ps[victim].cmd.Process.Pid, hostname(t))
		if got := p.stderr.String(); r != victim && (err == nil || !strings.HasSuffix(got, want)) {
			t.Errorf("rank %d ended with %v and said %q, want one line with %q", r, err, got, want)
		}
	}
}

func TestProcessesThatForgetToClose(t *testing.T) {
	for range testkit.UnlessShort(5, 2) {
		for r, p := range startProcesses(t, "silent", 5) {
			out, _ := io.ReadAll(p.stdout)
			if err := p.cmd.Wait(); string(out) != "sum 10\n" || err != nil {
				t.Errorf("rank %d printed %q and ended with %v: %s", r, out, err, p.stderr.String())
			}
		}
	}
}

func TestUnknownKernelsAreRefused(t *testing.T) {
	t.Setenv("GORUN_KERNELS", "none")
	p := startProcesses(t, "silent", 1)[0]
	_, _ = io.Copy(io.Discard, p.stdout)
	if err := p.cmd.Wait(); err == nil || !strings.Contains(p.stderr.String(), "GORUN_KERNELS=none: this machine has portable") {
		t.Errorf("it ended with %v and said %q", err, p.stderr.String())
	}
}

// hostname is the name of this machine.
func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}
