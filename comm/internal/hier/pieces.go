package hier

import (
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

// A long vector goes through the stages in pieces. What one stage has written is then still in the caches when the next one reads it. And
// while a piece is between machines, the ranks of a machine can combine or copy other pieces in memory. That takes a second goroutine in each
// rank, and so pays only if there are processors to spare.

const (
	// mostPieces bounds the number of stages.
	mostPieces = 64
	// fewPieces is how many pieces are enough: only the first stage of the first one, and the last stage of the last one, overlap with nothing.
	fewPieces = 8
)

// A piece is a part of each slice of a vector. These parts go through the stages at once.
type piece struct {
	slices [][]plan.Range // of every range of the vector: the parts of the slices of all ranks of this node, in bytes
	mine   []plan.Range   // of every range: that of this rank's slice, in elements
	plan   plan.Plan      // of this rank's rail; empty if it is on none
}

// add adds part i of so many of the slices of a range to p. me is this rank's index among them. They are in elements of elem bytes.
func (p *piece) add(slices []plan.Range, me, i, parts, elem int) {
	p.mine = append(p.mine, slices[me].Part(parts, i))
	var bytes []plan.Range
	for _, s := range slices {
		s = s.Part(parts, i)
		bytes = append(bytes, plan.Range{Lo: s.Lo * elem, Hi: s.Hi * elem})
	}
	p.slices = append(p.slices, bytes)
}

// whole returns the part of work that is p, if only the slices of one local rank are not empty.
func (p *piece) whole(work []byte, local int) []byte {
	first, last := p.slices[0][local], p.slices[len(p.slices)-1][local]
	return work[first.Lo:last.Hi]
}

// countPieces returns the number of pieces of a vector of so many bytes and ranges. It is the same on all ranks.
func (l *Layout) countPieces(bytes, rails, ranges int) int {
	_, most := l.Sizes()
	if most == 1 || rails == 1 && ranges > 1 {
		return 1
	}
	each := rails * l.nodes()
	block := min(max(bytes/(fewPieces*each), l.LeastBlock), l.MostBlock)
	return min(max(bytes/(block*each), 1), mostPieces)
}

// A stage of a piece in memory. It does nothing if one before it has failed.
type stage func(p *piece)

// inPieces carries out a call whose pieces each go through three stages: one in memory, one between nodes, and one in memory. between
// returns the task of the stage between nodes, without its plan. While a piece is between nodes, the next one goes through its first stage, and
// the one before through its last. Ranks of a node must make the same calls of their team in the same order. So the order is the same if the
// stages of this rank do not overlap.
func (c *Call) inPieces(r *Route, before stage, between func(p *piece) pipeline.Task, after stage) error {
	rail := c.startRail(c.Overlaps && len(r.pieces) > 1)
	for i := range r.pieces {
		p := &r.pieces[i]
		if before(p); c.err != nil {
			break
		}
		t := between(p)
		t.Plan = p.plan
		rail.start(t)
		if i > 0 {
			c.err = rail.await()
			after(&r.pieces[i-1])
		}
	}
	if c.err != nil {
		c.Caller.Fail(c.err) // so that what the rail does ends
	}
	if err := rail.end(); c.err == nil {
		c.err = err
	}
	after(&r.pieces[len(r.pieces)-1])
	return c.err
}

// A rail carries out the tasks of a call in order. After the first error it carries out no more.
type rail struct {
	call    *Call
	isAsync bool  // it does so in a goroutine of its own
	err     error // of its tasks

	// If it is asynchronous:
	tasks chan railTask
	ended chan error
	under int // how many have started, and have not been awaited
}

// A railTask is a task, or the end of a call's tasks.
type railTask struct {
	pipeline.Task
	isEnd bool
}

// mostTasks is how many tasks of a rail are started before the first one is awaited.
const mostTasks = 2

// startRail begins the tasks of c.
func (c *Call) startRail(isAsync bool) *rail {
	r := &c.rail
	r.call, r.isAsync, r.err = c, isAsync, nil
	if isAsync {
		if r.tasks == nil {
			r.tasks, r.ended = make(chan railTask, mostTasks), make(chan error, mostTasks)
		}
		c.Caller.Remaining() // the timeout begins here, so both goroutines only read it
		go r.serve()
	}
	return r
}

func (r *rail) serve() {
	for t := <-r.tasks; !t.isEnd; t = <-r.tasks {
		r.run(&t.Task)
		r.ended <- r.err
	}
	r.ended <- r.err
}

func (r *rail) run(t *pipeline.Task) {
	if len(t.Plan) > 0 && r.err == nil {
		r.err = r.call.Pipeline.Run(r.call.Call, t)
	}
}

func (r *rail) start(t pipeline.Task) {
	if !r.isAsync {
		r.run(&t)
		return
	}
	r.under++
	r.tasks <- railTask{Task: t}
}

// await waits until the oldest task has ended.
func (r *rail) await() error {
	if !r.isAsync {
		return r.err
	}
	r.under--
	return <-r.ended
}

// end waits until all tasks have ended, and so has the goroutine.
func (r *rail) end() error {
	if !r.isAsync {
		return r.err
	}
	for r.under > 0 {
		_ = r.await() // it comes again
	}
	r.tasks <- railTask{isEnd: true}
	return <-r.ended
}
