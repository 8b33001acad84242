package comm

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// asSurvivor is the variable that makes the test binary a survivor: a worker that does what lines on stdin say, and writes what has come of it
// to stdout. Its value says how ranks reach each other.
const asSurvivor = "COMM_TEST_SURVIVOR"

// A result is what a survivor says of a command.
type result struct {
	Command string
	Text    string
	Error   string // empty: none
	Kind    string // of the error
	Peer    *PeerError
	At      time.Time // when it had ended
	Took    time.Duration
	Code    int // exit code of such an error
}

// A survivor has what its commands work on.
type survivor struct {
	options []Option
	world   *Group
	before  *Group // the world before
	other   *Group // by another method
	buf     []int64
}

var survivorCommands = map[string]func(ctx context.Context, s *survivor, args []string) (string, error){
	"init": func(ctx context.Context, s *survivor, args []string) (string, error) {
		options := s.options
		if len(args) > 0 {
			options = append(slices.Clone(options), WithInitMethod(args[0]))
		}
		g, err := Init(ctx, options...)
		switch {
		case err != nil:
		case len(args) > 0:
			s.other = g
		default:
			s.world = g
		}
		return "", err
	},
	// rejoin takes milliseconds, after which the context ends. With COMM_TEST_AGAIN it calls Rejoin until it succeeds, as programs do.
	"rejoin": func(ctx context.Context, s *survivor, args []string) (string, error) {
		if len(args) > 0 {
			var cancel context.CancelFunc
			ctx, cancel = within(ctx, args[0])
			defer cancel()
		}
		g, err := Rejoin(ctx)
		for len(args) == 0 && (errors.As(err, new(*PeerError)) || errors.Is(err, ErrRoundOver)) && os.Getenv("COMM_TEST_AGAIN") != "" {
			g, err = Rejoin(ctx)
		}
		if err == nil {
			s.before, s.world = s.world, g
		}
		return "", err
	},
	"check": func(ctx context.Context, s *survivor, _ []string) (string, error) {
		return "", checkWorld(ctx, s.world)
	},
	// run repeats an operation until it fails.
	"run": func(ctx context.Context, s *survivor, args []string) (string, error) {
		operation := survivable[args[0]]
		if operation == nil {
			operation = operations[args[0]]
		}
		for {
			if err := operation(ctx, s.world); err != nil {
				return "", err
			}
		}
	},
	// use carries an operation out in the world before.
	"use old": func(ctx context.Context, s *survivor, args []string) (string, error) {
		return "", operations[args[0]](ctx, s.before)
	},
	"use other": func(ctx context.Context, s *survivor, args []string) (string, error) {
		return "", operations[args[0]](ctx, s.other)
	},
	// alloc allocates elements.
	"alloc": func(_ context.Context, s *survivor, args []string) (_ string, err error) {
		s.buf, err = Alloc[int64](s.world, number(args[0]))
		return "", err
	},
	// fill makes every element of what has been allocated a number.
	"fill": func(_ context.Context, s *survivor, args []string) (string, error) {
		n := int64(number(args[0]))
		repeat(s.buf, 1, func(int) int64 { return n })
		return "", nil
	},
	// holds checks that every element is a number.
	"holds": func(_ context.Context, s *survivor, args []string) (string, error) {
		n := int64(number(args[0]))
		return "", samePeriods("memory", nil, s.buf, func(int) int64 { return n })
	},
	"reduce": func(ctx context.Context, s *survivor, _ []string) (string, error) {
		return "", AllReduce(ctx, s.world, s.buf, Sum)
	},
	"reduce for ever": func(ctx context.Context, s *survivor, _ []string) (string, error) {
		for {
			if err := AllReduce(ctx, s.world, s.buf, Max); err != nil {
				return "", err
			}
		}
	},
	"free":     func(_ context.Context, s *survivor, _ []string) (string, error) { return "", Free(s.world, s.buf) },
	"free old": func(_ context.Context, s *survivor, _ []string) (string, error) { return "", Free(s.before, s.buf) },
	// fork lets another process with the same environment call Init.
	"fork": func(ctx context.Context, _ *survivor, _ []string) (string, error) {
		child := exec.CommandContext(ctx, os.Args[0])
		child.Stdin = strings.NewReader(`["init"]` + "\n")
		out, err := child.Output()
		return string(out), err
	},
	"close": func(_ context.Context, s *survivor, _ []string) (string, error) { return "", s.world.Close() },
	"exit": func(_ context.Context, _ *survivor, args []string) (string, error) {
		os.Exit(number(args[0]))
		return "", nil
	},
	"setenv": func(_ context.Context, _ *survivor, args []string) (string, error) {
		return "", os.Setenv(args[0], args[1])
	},
	"unsetenv": func(_ context.Context, _ *survivor, args []string) (string, error) {
		for _, name := range args {
			if err := os.Unsetenv(name); err != nil {
				return "", err
			}
		}
		return "", nil
	},
	// sockets are the numbers of this process's sockets.
	"sockets": func(context.Context, *survivor, []string) (string, error) {
		links, err := filepath.Glob("/proc/self/fd/*")
		var sockets []string
		for _, link := range links {
			if to, _ := os.Readlink(link); strings.HasPrefix(to, "socket:") {
				sockets = append(sockets, to)
			}
		}
		return strings.Join(sockets, " "), err
	},
	// explain explains an operation of the world, or of the group of some ranks.
	"explain": func(ctx context.Context, s *survivor, args []string) (_ string, err error) {
		g := s.world
		if len(args) > 2 {
			var ranks []int
			for _, rank := range args[2:] {
				ranks = append(ranks, number(rank))
			}
			if g, err = NewGroup(ctx, s.world, ranks); err != nil || g == nil {
				return "", err
			}
		}
		return g.Explain(args[0], number(args[1])), nil
	},
	"footprint": func(context.Context, *survivor, []string) (string, error) { return footprint() },
}

func within(ctx context.Context, milliseconds string) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(number(milliseconds))*time.Millisecond)
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// checkWorld uses a world as programs do that make their groups again, and compares every result.
func checkWorld(ctx context.Context, g *Group) error {
	round, err := strconv.Atoi(os.Getenv("GORUN_ROUND"))
	if err != nil {
		return err
	}
	part, err := NewGroup(ctx, g, g.Ranks())
	if err != nil {
		return err
	}
	mesh, err := NewMesh(ctx, g, []int{g.Size(), 1}, "data", "model")
	if err != nil {
		return err
	}
	for _, g := range []*Group{g, part, mesh.Group("data")} {
		for _, n := range []int{1, 1000, 100_000} {
			shared, err := Alloc[int64](g, n)
			if err != nil {
				return err
			}
			for _, buf := range [][]int64{make([]int64, n), shared} {
				want := int64(0)
				for r := range g.Size() {
					want += int64(1000*round + r)
				}
				repeat(buf, 1, func(int) int64 { return int64(1000*round + g.Rank()) })
				err := AllReduce(ctx, g, buf, Sum)
				if err := samePeriods(fmt.Sprintf("round %d: AllReduce", round), err, buf, func(int) int64 { return want }); err != nil {
					return err
				}
			}
			if err := Free(g, shared); err != nil {
				return err
			}
		}
		next, before := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
		out, in := ISend(g, []int{1000*round + g.Rank()}, next), []int{0}
		if _, err := Recv(ctx, g, in, before); err != nil {
			return err
		}
		if err := out.Wait(ctx); err != nil {
			return err
		}
		if in[0] != 1000*round+before {
			return fmt.Errorf("round %d: rank %d sends %d", round, before, in[0])
		}
	}
	return nil
}

// footprint is what a process has that may leak.
func footprint() (string, error) {
	runtime.GC()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return "", err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return "", err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return fmt.Sprint(runtime.NumGoroutine(), len(fds), strings.Count(string(maps), "memfd:gorun"), m.HeapAlloc>>10), nil
}

// runSurvivor is main of a survivor.
func runSurvivor(network string) int {
	timeout, err := time.ParseDuration(cmp.Or(os.Getenv("COMM_TEST_TIMEOUT"), "1m"))
	if err != nil {
		panic(err)
	}
	options := []Option{WithTimeout(timeout), WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil)))}
	switch network {
	case "tcp":
		options = append(options, WithTransport("tcp"))
	case "tls":
		options = append(options, WithTransport("tcp"), func(c *config) { c.Near = func(net.Conn) bool { return false } })
	case "shm":
		options = append(options, WithTransport("shm"))
	}
	if os.Getenv("COMM_TEST_PASSES_TOKEN") != "" {
		options = append(options, WithToken(os.Getenv("GORUN_TOKEN")))
	}
	s := &survivor{options: options}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var words []string
		if err := json.Unmarshal(lines.Bytes(), &words); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if words[0] == "go" {
			go s.do(os.Stdout, words[1:])
		} else {
			s.do(os.Stdout, words)
		}
	}
	return 0
}

// do carries a command out.
func (s *survivor) do(out io.Writer, words []string) {
	begun := time.Now()
	text, err := survivorCommands[words[0]](context.Background(), s, words[1:])
	r := result{Command: words[0], Text: text, At: time.Now(), Took: time.Since(begun), Code: ExitCode(err)}
	if err != nil {
		r.Error, r.Kind = err.Error(), fmt.Sprintf("%T", err)
		switch {
		case errors.As(err, &r.Peer):
			r.Kind, r.Peer.Err = "peer", nil
		case errors.Is(err, ErrRoundOver):
			r.Kind = "over"
		}
	}
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(out, "%s\n", line)
}

// survivable are operations that wait for another rank for ever, each in its own way, besides those in the table operations.
var survivable = map[string]func(ctx context.Context, g *Group) error{
	"Recv": func(ctx context.Context, g *Group) error {
		_, err := Recv(ctx, g, []int{0}, victim)
		return err
	},
	"Recv from any": func(ctx context.Context, g *Group) error {
		_, err := Recv(ctx, g, []int{0}, AnySource)
		return err
	},
	"Send": func(ctx context.Context, g *Group) error { return Send(ctx, g, make([]byte, 1<<20), victim) },
	"MonitoredBarrier": func(ctx context.Context, g *Group) error {
		return MonitoredBarrier(ctx, g)
	},
	"NewMesh": func(ctx context.Context, g *Group) error {
		_, err := NewMesh(ctx, g, []int{g.Size()}, "data")
		return err
	},
	"I-forms": func(ctx context.Context, g *Group) error {
		works := []*Work{IAllReduce(g, make([]int, 400), Sum), IBroadcast(g, make([]int, 400), 0), IBarrier(g), IRecv(g, make([]int, 4), victim)}
		var err error
		for _, w := range works {
			err = errors.Join(err, w.Wait(ctx))
		}
		return err
	},
	// in groups made of groups, at the same time
	"several groups": func(ctx context.Context, g *Group) error {
		part, err := NewGroup(ctx, g, g.Ranks())
		if err != nil {
			return err
		}
		last, err := Split(ctx, part, 0, -part.Rank())
		if err != nil {
			return err
		}
		failed := make(chan error)
		for _, g := range []*Group{g, part, last} {
			go func() {
				var err error
				for err == nil {
					err = AllReduce(ctx, g, make([]int, 20_000), Sum)
				}
				failed <- err
			}()
		}
		for range 3 {
			if e := <-failed; !errors.As(e, new(*PeerError)) {
				return fmt.Errorf("one of the groups: %w", e)
			} else {
				err = e
			}
		}
		return err
	},
	"in place": func(ctx context.Context, g *Group) error {
		buf, err := Alloc[float32](g, 300_000)
		if err != nil {
			return err
		}
		for err == nil {
			err = AllReduce(ctx, g, buf, Sum)
		}
		return err
	},
	"Batch": func(ctx context.Context, g *Group) error {
		var err error
		for _, w := range Batch(SendOp(g, make([]byte, 1<<20), victim), RecvOp(g, []int{0}, victim)) {
			err = errors.Join(err, w.Wait(ctx))
		}
		return err
	},
	"Probe": func(ctx context.Context, g *Group) error { _, err := Probe(ctx, g, victim); return err },
	"RecvObjects": func(ctx context.Context, g *Group) error {
		_, err := RecvObjects(ctx, g, []any{new(string)}, victim)
		return err
	},
}

// victim is the rank that dies where only one does.
const victim = 1
