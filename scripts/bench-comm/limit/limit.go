// Package limit measures how fast collectives over TCP can be: ranks move the bytes that package pattern says over raw sockets, without
// a library. There is no matching and there are no headers; nothing is computed but the sums of operations that reduce. The engine that
// moves the bytes exists twice: in Go in this package, and in C in peers/limit.c.
package limit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/scripts/bench-comm/pattern"
)

// A test is an operation with a number of bytes, and the ways to carry it out.
type test struct {
	op    string
	bytes int
	sent  int // bytes at the beginning of memory that the rank sends
	ways  []pattern.Way
}

// A plan says what to measure.
type plan struct {
	program string // in C; empty: the engine in Go
	ops     []string
	sizes   []int
	states  []string
	seconds float64 // for each test and state, about
}

// Main is a rank that gorun has started. Its arguments are PROGRAM OPS SIZES STATES SECONDS: the path of the program in C, or "go";
// then lists with commas in them. Rank 0 prints "result OP BYTES STATE MICROSECONDS WAY" for each test. It returns an error, unless
// the program in C takes over.
func Main(ctx context.Context, args []string, out io.Writer) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	m, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("connecting the ranks: %w", err)
	}
	tests, err := p.tests(m.rank, len(m.peers))
	if err != nil {
		return err
	}
	if p.program != "" {
		return p.exec(m, tests)
	}
	return p.measure(m, tests, out)
}

func parse(args []string) (p plan, err error) {
	if len(args) != 5 {
		return p, fmt.Errorf("%d arguments, want PROGRAM OPS SIZES STATES SECONDS", len(args))
	}
	if args[0] != "go" {
		p.program = args[0]
	}
	p.ops, p.states = strings.Split(args[1], ","), strings.Split(args[3], ",")
	for text := range strings.SplitSeq(args[2], ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return p, fmt.Errorf("size %q: want a number of bytes", text)
		}
		p.sizes = append(p.sizes, n)
	}
	for _, state := range p.states {
		if state != "hot" && state != "dirty" {
			return p, fmt.Errorf("state %q: want hot or dirty", state)
		}
	}
	if p.seconds, err = strconv.ParseFloat(args[4], 64); err != nil || !(p.seconds > 0) {
		return p, fmt.Errorf("seconds %q: want more than 0", args[4])
	}
	return p, nil
}

// tests returns what a rank has to do.
func (p plan) tests(rank, size int) (list []test, err error) {
	for _, op := range p.ops {
		sizes := p.sizes
		if op == "barrier" {
			sizes = []int{0}
		}
		for _, n := range sizes {
			t := test{op: op, bytes: n, sent: pattern.Sent(op, rank, size, n)}
			if t.ways, err = pattern.Ways(op, rank, size, n); err != nil {
				return nil, err
			}
			list = append(list, t)
		}
	}
	return list, nil
}

// statesOf leaves out dirty memory for operations that have none.
func (p plan) statesOf(t test) []string {
	if t.bytes == 0 {
		return []string{"hot"}
	}
	return p.states
}

// write writes tests for the program in C: words and numbers, all of them between blanks.
func (p plan) write(w io.Writer, tests []test) error {
	b := bufio.NewWriter(w)
	for _, t := range tests {
		states := p.statesOf(t)
		memory := 0
		for _, way := range t.ways {
			memory = max(memory, way.Memory)
		}
		fmt.Fprintf(b, "test %s %d %d %d %d %d %d\n", t.op, t.bytes, t.sent, memory, flag(states, "hot"), flag(states, "dirty"), len(t.ways))
		for _, way := range t.ways {
			fmt.Fprintf(b, "way %s %d\n", way.Name, len(way.Steps))
			for _, s := range way.Steps {
				fmt.Fprintf(b, "step %d\n", len(s))
				for _, m := range s {
					fmt.Fprintf(b, "%c %d %d %d %d\n", m.Kind, m.Peer, m.From, m.At, m.Length)
				}
			}
		}
	}
	return b.Flush()
}

func flag(states []string, state string) int {
	if slices.Contains(states, state) {
		return 1
	}
	return 0
}

// exec replaces this process by the program in C, which inherits the connections, and a file with the tests that has no name any more.
func (p plan) exec(m *mesh, tests []test) error {
	f, err := os.CreateTemp("", "bench-comm-limit-*")
	if err != nil {
		return err
	}
	err = errors.Join(os.Remove(f.Name()), p.write(f, tests))
	if _, failed := f.Seek(0, io.SeekStart); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	argv := []string{p.program, strconv.Itoa(m.rank), strconv.FormatFloat(p.seconds, 'g', -1, 64), strconv.Itoa(int(f.Fd()))}
	for _, fd := range append([]int{int(f.Fd())}, m.peers...) {
		if fd >= 0 {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
				return err
			}
		}
	}
	for _, fd := range m.peers {
		argv = append(argv, strconv.Itoa(fd))
	}
	return fmt.Errorf("%s: %w", p.program, syscall.Exec(p.program, argv, os.Environ()))
}
