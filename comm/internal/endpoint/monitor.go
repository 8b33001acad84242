package endpoint

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// monitorTag marks the questions of Monitor: who is asked need not ask the others itself.
const monitorTag = 1

// A monitor is a Monitor under way. Guarded by the endpoint's mutex, except for done.
type monitor struct {
	diagnosis.Missing
	done chan struct{} // closed when nobody is missing
}

// reported takes in r, in which rank says what it does.
func (m *monitor) reported(rank int, r *diagnosis.Report) {
	missing := len(m.Ranks) > 0
	if m.Reported(rank, r); missing && len(m.Ranks) == 0 {
		close(m.done)
	}
}

// Monitor asks the other members whether they have begun collective seq, in which this rank is, and those that have not
// again every so often. If some have not by ctx's deadline, and this rank waits in the collective still, it fails the lane
// with a failure that names them. If another member asks already, it leaves that to it.
func (l *Lane) Monitor(ctx context.Context, seq uint64, every time.Duration) {
	e := l.ep
	if l.isMonitored(seq) {
		return
	}
	others := slices.DeleteFunc(slices.Clone(l.members), func(rank int) bool { return rank == e.rank })
	m := &monitor{Missing: diagnosis.Missing{Seq: seq, Ranks: others}, done: make(chan struct{})}
	again := time.NewTicker(every)
	defer again.Stop()
	for ctx.Err() == nil {
		e.mu.Lock()
		l.monitor = m
		for _, rank := range m.Ranks {
			l.ask(rank, seq, monitorTag)
		}
		e.mu.Unlock()
		select {
		case <-again.C:
		case <-ctx.Done():
		case <-m.done: // they are all there, and nobody need fail
			return
		case <-e.ctx.Done():
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := l.collectives.At(seq); errors.Is(ctx.Err(), context.DeadlineExceeded) && len(m.Ranks) > 0 && r != nil && l.waitsIn(seq) {
		l.fail(m.Failure(e.name(r.Call, seq), time.Since(r.Began)), -1)
	}
}

func (l *Lane) isMonitored(seq uint64) bool {
	l.ep.mu.Lock()
	defer l.ep.mu.Unlock()
	return l.monitored == seq
}

// waitsIn says whether an operation of collective seq is under way. The mutex is held.
func (l *Lane) waitsIn(seq uint64) bool {
	return slices.ContainsFunc(l.ops, func(op *Op) bool { return op.seq == seq })
}
