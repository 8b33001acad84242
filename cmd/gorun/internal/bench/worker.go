package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/network"
)

// WorkerCommand is the gorun command that runs a worker of a benchmark. Its argument is a Config in JSON.
const WorkerCommand = "bench-worker"

// A rankInfo is what each rank sends the others about itself.
type rankInfo struct {
	Config string
	Host   string
	Pid    int
}

// Work is a worker of a benchmark. With all other workers, it measures what config says, and rank 0 writes the results to
// out. Every rank that found wrong elements returns an error, and so does rank 0 if any rank did.
func Work(ctx context.Context, config string, out io.Writer) error {
	var c Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	world, err := comm.Init(ctx, comm.WithTransport(comm.Transport(c.Transport)))
	if err != nil {
		return err
	}
	err = work(ctx, world, &c, config, out)
	return errors.Join(err, world.Close())
}

func work(ctx context.Context, world *comm.Group, c *Config, config string, out io.Writer) error {
	if err := c.Check(world.Size()); err != nil {
		return err
	}
	members, err := comm.AllGatherObject(ctx, world, rankInfo{config, network.Hostname(), os.Getpid()})
	if err != nil {
		return err
	}
	for rank, m := range members {
		if m.Config != members[0].Config {
			return usagef("the flags of rank %d differ from those of rank 0: give every node the same flags", rank)
		}
	}
	if world.Rank() != 0 {
		out = io.Discard
	}
	w := worker{meter: meter{ctx: ctx, g: world, c: c}, printer: printer{c: c, out: out}}
	run := w.run
	switch {
	case c.Tune:
		run = w.tune
	case c.Explain:
		run = w.explain
	}
	if err := run(members); err != nil {
		return err
	}
	if err := comm.Barrier(ctx, world); err != nil {
		return err
	}
	switch here, all := w.meter.wrong, w.printer.wrong; {
	case here > 0: // which does not depend on what ranks have sent each other
		return fmt.Errorf("%d elements are wrong on rank %d", here, world.Rank())
	case world.Rank() == 0 && all > 0:
		return fmt.Errorf("%d elements are wrong on other ranks", all)
	}
	return nil
}

// A worker measures, and reports what it has measured.
type worker struct {
	meter   meter
	printer printer
}

func (w *worker) run(members []rankInfo) error {
	w.printer.start(members)
	last := ""
	for _, e := range w.meter.c.experiments(len(members)) {
		if e.name != last {
			w.printer.end()
			w.printer.begin(e.name)
			last = e.name
		}
		if err := w.experiment(e); err != nil {
			return err
		}
	}
	w.printer.end()
	return w.printer.err
}

// explain prints which algorithms comm would use. The barrier makes comm find out first where ranks share memory.
func (w *worker) explain([]rankInfo) error {
	g, c := w.meter.g, w.meter.c
	if err := comm.Barrier(w.meter.ctx, g); err != nil {
		return err
	}
	if g.Rank() > 0 {
		return nil // Explain takes time, and only rank 0 prints
	}
	for _, name := range c.Operations {
		e := c.experimentsOf(operationNamed(name), g.Size())[0]
		for size := range e.sizes(c, g.Size()) {
			w.printer.line("%s", strings.TrimSuffix(g.Explain(name, int(size)), "\n"))
		}
	}
	return w.printer.err
}

// sizes returns the sizes to measure.
func (e *experiment) sizes(c *Config, ranks int) iter.Seq[int64] {
	if !e.moves() {
		return slices.Values([]int64{0})
	}
	return c.Sizes.of(e.unit(ranks))
}

// unit returns the bytes of one element, or of one element for every rank if the buffer has a block for each.
func (e *experiment) unit(ranks int) int64 {
	if e.blocks {
		return e.typ.size * int64(ranks)
	}
	return e.typ.size
}

// experiment measures all sizes.
func (w *worker) experiment(e experiment) error {
	g, c := w.meter.g, w.meter.c
	unit, room := e.unit(g.Size()), int64(0)
	if e.moves() {
		room = c.Sizes.largest(unit) / e.typ.size
	}
	call, free, err := e.typ.caller(w.meter.ctx, g, e, int(room))
	if err != nil {
		return err
	}
	return errors.Join(w.rows(e, e.sizes(c, g.Size()), unit, call), free())
}

// rows measures the calls of all sizes and reports a row for each. unit is in bytes.
func (w *worker) rows(e experiment, sizes iter.Seq[int64], unit int64, call caller) (err error) {
	g, c := w.meter.g, w.meter.c
	for size := range sizes {
		r := newRow(e, g.Size(), size, int(size/unit), c)
		for _, form := range []struct {
			there   bool
			figures **figures
		}{{e.out, &r.OutOfPlace}, {e.in, &r.InPlace}} {
			if !form.there {
				continue
			}
			if *form.figures, err = w.figures(e, size, call(r.Count, form.figures == &r.InPlace)); err != nil {
				return err
			}
		}
		w.printer.row(r)
	}
	return nil
}

// figures checks and measures a call.
func (w *worker) figures(e experiment, size int64, c *call) (*figures, error) {
	var wrong *int
	if w.meter.c.Checks > 0 && e.moves() {
		n, err := w.meter.check(c)
		if err != nil {
			return nil, err
		}
		wrong = &n
	}
	m, err := w.meter.measure(c)
	if err != nil {
		return nil, err
	}
	if e.name == pingPong {
		m.mean, m.p50, m.p99 = m.mean/2, m.p50/2, m.p99/2
	}
	return newFigures(e, w.meter.g.Size(), size, m, wrong, w.meter.c.P99), nil
}
