package pipeline_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/testing/simulation"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.OwnSettings(m)) }

// aMinute is a caller that gives a call a minute.
type aMinute struct{ *endpoint.Communicator }

func (aMinute) Remaining() time.Duration { return time.Minute }

// run carries out each member's task, of elements of so many bytes.
func run(w *simulation.World, elem, chunk int, task func(rank int) *pipeline.Task) error {
	return errors.Join(w.Run(func(g *core.Group) error {
		c := pipeline.Call{Seq: 1, Call: call.Call{Kind: call.KindAllGather}, Elem: elem, Caller: aMinute{g.Comm}}
		if err := g.Comm.Begin(c.Seq, c.Call, 0); err != nil {
			return err
		}
		pl := pipeline.New(g.Comm, g.Ranks, g.Rank(), chunk)
		if err := pl.Run(c, task(g.Rank())); err != nil {
			return fmt.Errorf("member %d: %w", g.Rank(), err)
		}
		return nil
	})...)
}

const elem = 2 // bytes of a value: a function x -> ax+b

// compose applies first the left function, and then the right one.
func compose(dst, left, right []byte) {
	for i := 0; i < len(dst); i += elem {
		dst[i], dst[i+1] = left[i]*right[i], right[i]*left[i+1]+right[i+1]
	}
}

func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(b)
	return b
}

// A model is vectors of all members, on which it carries out steps at the same time as it adds them to plans.
type model struct {
	plans    []plan.Plan
	src, dst [][]byte // the same ones, if plans work in place
	scale    int      // one unit of a range is so many elements
}

func (m *model) at(v []byte, r plan.Range) []byte { return v[r.Lo*elem : r.Hi*elem] }

// most is the length of vectors, in units.
const most = 16

// add adds one step of several members, at most one each.
func (m *model) add(steps map[int]plan.Step) {
	messages := map[int][]byte{}
	for r, s := range steps {
		m.plans[r] = append(m.plans[r], s)
		if s.To != plan.None {
			messages[s.To] = bytes.Clone(m.at(m.src[r], s.Send))
		}
	}
	for r, s := range steps {
		into := m.at(m.dst[r], s.Recv)
		switch {
		case s.From == plan.None:
		case s.Merge == plan.Left:
			compose(into, messages[r], into)
		case s.Merge == plan.Right:
			compose(into, into, messages[r])
		default:
			copy(into, messages[r])
		}
	}
}

// draw adds a random step: a message, an exchange of two members, one around the ring, or a copy.
func (m *model) draw(t *rapid.T, inPlace bool) {
	size := len(m.plans)
	n := rapid.IntRange(0, most/2).Draw(t, "length")
	at := func(name string) plan.Range {
		lo := rapid.IntRange(0, most-n).Draw(t, name)
		return plan.Range{Lo: lo * m.scale, Hi: (lo + n) * m.scale}
	}
	steps := map[int]plan.Step{}
	step := func(r, to, from int) {
		s := plan.Step{To: to, From: from}
		if to != plan.None {
			s.Send = at("send")
		}
		if from != plan.None {
			s.Recv = at("receive")
			s.Merge = rapid.SampledFrom([]plan.Merge{plan.Replace, plan.Swap, plan.Left, plan.Right}).Draw(t, "merge")
		}
		if inPlace && s.Merge == plan.Replace && s.Send.Overlaps(s.Recv) {
			s.Merge = plan.Swap
		}
		steps[r] = s
	}
	a := rapid.IntRange(0, size-1).Draw(t, "member")
	b := (a + rapid.IntRange(1, size-1).Draw(t, "distance")) % size
	switch rapid.SampledFrom([]string{"message", "exchange", "ring", "copy"}).Draw(t, "step") {
	case "message":
		step(a, b, plan.None)
		step(b, plan.None, a)
	case "exchange":
		step(a, b, b)
		step(b, a, a)
	case "ring":
		for r := range size {
			step(r, (r+b-a+size)%size, (r-b+a+size)%size)
		}
	case "copy":
		step(a, a, a)
		if s := steps[a]; inPlace && s.Send.Overlaps(s.Recv) {
			return
		}
	}
	m.add(steps)
}

// TestEveryPlan: members that carry out plans have in the end what one step after the other leaves, whatever the plans,
// the length of chunks, and the order in which messages arrive.
func TestEveryPlan(t *testing.T) {
	for i := range 6 {
		rapid.Check(t, everyPlan(t, 2+i%3, i < 3))
	}
}

func everyPlan(t *testing.T, size int, inPlace bool) func(rt *rapid.T) {
	return func(rt *rapid.T) {
		m := &model{plans: make([]plan.Plan, size), scale: rapid.SampledFrom([]int{1, 1, 1, 30_000}).Draw(rt, "scale")}
		chunk := m.scale * rapid.SampledFrom([]int{2, 4, 6, 16, 50}).Draw(rt, "chunk") // bytes
		for r := range size {
			v := noise(uint64(r), most*m.scale*elem)
			m.src, m.dst = append(m.src, v), append(m.dst, v)
			if !inPlace {
				m.dst[r] = noise(uint64(size+r), len(v))
			}
		}
		tasks := make([]pipeline.Task, size)
		for r := range size {
			tasks[r] = pipeline.InPlace(nil, bytes.Clone(m.src[r]))
			if !inPlace {
				tasks[r].Dst = pipeline.Vector{Buf: bytes.Clone(m.dst[r])}
			}
			tasks[r].Kernel = compose
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			m.draw(rt, inPlace)
		}
		c := simulation.Config{Size: size, Seed: rapid.Uint64().Draw(rt, "seed")}
		var err error
		simulation.InOrder(t, c, func(w *simulation.World) {
			err = run(w, elem, chunk, func(rank int) *pipeline.Task {
				tasks[rank].Plan = m.plans[rank]
				return &tasks[rank]
			})
		})
		if err != nil {
			rt.Fatalf("%v, chunks of %d: %v; plans %+v", c, chunk, err, m.plans)
		}
		for r := range size {
			if got := tasks[r].Dst.Buf; !bytes.Equal(got, m.dst[r]) {
				i := 0
				for got[i] == m.dst[r][i] {
					i++
				}
				rt.Fatalf("%v, chunks of %d bytes, in place %t: element %d of member %d differs; plans %+v", c, chunk, inPlace, i/elem, r, m.plans)
			}
		}
	}
}

// TestChunksGoAheadHoweverManyHaveGone: the next chunks go ahead of the order of steps. Here member 1 waits for some
// before it sends what member 0 waits for.
func TestChunksGoAheadHoweverManyHaveGone(t *testing.T) {
	const before, ahead = 100, 4
	in := [2][]byte{make([]byte, before+ahead), make([]byte, before+ahead)}
	simulation.InOrder(t, simulation.Config{Size: 2, Seed: 1}, func(w *simulation.World) {
		err := run(w, 1, 1<<20, func(rank int) *pipeline.Task {
			peer := 1 - rank
			var p, sends plan.Plan
			for i := range before + ahead {
				s := plan.Step{To: peer, Send: plan.Range{Lo: i, Hi: i + 1}, From: peer, Recv: plan.Range{Lo: i, Hi: i + 1}}
				if i >= before && rank == 1 {
					sends = append(sends, plan.Step{To: peer, Send: s.Send, From: plan.None})
					s.To = plan.None
				}
				p = append(p, s)
			}
			out := bytes.Repeat([]byte{byte(rank)}, before+ahead)
			return &pipeline.Task{Plan: append(p, sends...), Src: pipeline.Vector{Buf: out}, Dst: pipeline.Vector{Buf: in[rank]}}
		})
		if err != nil || !bytes.Equal(in[0], bytes.Repeat([]byte{1}, before+ahead)) {
			t.Errorf("got %v, %v", in[0], err)
		}
	})
}

// TestChunksWaitInScratchMemory: they come before what is combined earlier, and more of them than there is memory for.
func TestChunksWaitInScratchMemory(t *testing.T) {
	const chunk, n = 512 << 10, 12 * 512 << 10
	first, all := plan.Range{Hi: 1}, plan.Range{Hi: n / elem}
	for seed := range testkit.UnlessShort(uint64(12), 3) {
		own, other := noise(1, n), noise(2, n)
		want := bytes.Clone(own)
		copy(want, other[:elem])
		compose(want, other, want)
		simulation.InOrder(t, simulation.Config{Size: 3, Seed: seed}, func(w *simulation.World) {
			err := run(w, elem, chunk, func(rank int) *pipeline.Task {
				task := pipeline.InPlace(plan.Plan{{To: 0, Send: all, From: plan.None}}, other)
				switch rank {
				case 0:
					task = pipeline.InPlace(plan.Plan{
						{To: plan.None, From: 2, Recv: first}, {To: plan.None, From: 1, Recv: all, Merge: plan.Left},
					}, own)
				case 2:
					task.Plan[0].Send = first
				}
				task.Kernel = compose
				return &task
			})
			if err != nil || !bytes.Equal(own, want) {
				t.Errorf("seed %d: a wrong result, or %v", seed, err)
			}
		})
	}
}
