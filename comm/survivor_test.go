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
	"os"
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
		options = append(options, WithTransport("tcp"), option(notNear))
	case "shm":
		options = append(options, WithTransport("shm"))
	case "store":
		options = append(options, WithRoundStore(func(context.Context) (Store, error) {
			return NewFileStore(os.Getenv("COMM_TEST_STORE"))
		}))
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
