package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/scripts/internal/peers"
)

// A bench runs contenders in turn.
type bench struct {
	options
	contenders []contender
	execute    func(*exec.Cmd) error // (*exec.Cmd).Run, or the same on another host
	samples    samples
	troubles   []string // launches that went wrong
	failed     int      // of comm
}

// run launches every contender for each operation and number of ranks, round by round, until ctx ends.
func (b *bench) run(ctx context.Context) {
	each := 1
	if b.together {
		each = len(b.ops)
	}
	for round := range b.rounds {
		for _, ranks := range b.ranks {
			for ops := range slices.Chunk(b.ops, each) {
				b.turn(ctx, round, ranks, ops)
			}
		}
	}
	if ctx.Err() != nil {
		b.troubles = append(b.troubles, "interrupted: there are fewer figures")
	}
}

// turn launches the contenders; which one is first changes with the round. If a contender other than comm fails, that is only
// noted.
func (b *bench) turn(ctx context.Context, round, ranks int, ops []string) {
	for i := range b.contenders {
		if ctx.Err() != nil {
			return
		}
		c, began := b.contenders[(round+i)%len(b.contenders)], time.Now()
		what := fmt.Sprintf("%s, %d ranks, %s", c.Name, ranks, strings.Join(ops, " "))
		err := b.launch(ctx, c, ranks, ops)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			fmt.Fprintf(os.Stderr, "round %d of %d: %s: %.1f s\n", round+1, b.rounds, what, time.Since(began).Seconds())
		default:
			b.troubles = append(b.troubles, fmt.Sprintf("%s: %v", what, err))
			fmt.Fprintf(os.Stderr, "round %d of %d: %s: %v\n", round+1, b.rounds, what, err)
			if c.isOurs() {
				b.failed++
			}
		}
	}
}

// launch makes a contender measure some operations. It ends a launch that takes far too long, as MPICH may with more
// ranks than cores. Results from before an error count.
func (b *bench) launch(ctx context.Context, c contender, ranks int, ops []string) error {
	if c.triad && slices.Contains(ops, "all_reduce") {
		ops = append(slices.Clip(ops), triad)
	}
	cells := len(ops) * len(b.sizes) * len(b.states)
	ctx, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(cells)*10*b.time)
	defer cancel()
	argv := append(c.command(ranks), strings.Join(ops, ","), numbers(b.sizes), strings.Join(b.states, ","),
		strconv.FormatFloat(b.time.Seconds(), 'g', -1, 64))
	cmd := peers.Command(ctx, argv)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it has ranks to end
	cmd.WaitDelay = 10 * time.Second
	err := b.execute(cmd)
	if ctx.Err() != nil {
		err = fmt.Errorf("ended: %w", ctx.Err())
	} else if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(complaints.String()))
	}
	failed := b.samples.parse(c.Name, ranks, out.String())
	return errors.Join(err, failed)
}

// report returns all results.
func (b *bench) report(machine string, notes []string) report {
	r := report{
		Machine: machine, Contenders: b.contenders, Notes: append(notes, b.troubles...), Rounds: b.rounds,
		options: b.options, samples: b.samples,
	}
	r.Triad = b.samples.triad()
	b.samples.addBound(r.Triad)
	r.Figures = b.samples.figures()
	for _, g := range goals {
		r.Goals = append(r.Goals, g.outcome(b.samples))
	}
	return r
}
