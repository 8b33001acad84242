package plan

import (
	"slices"
)

// An element is the ranks whose contributions are in it, in the order in which they were combined.
type element []int

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// simulate runs the plans of all ranks on vectors of elements, without sockets or goroutines, as slowly as a transport
// may: a step ends when its receiver has taken what it sends. It fails when no rank can go on, when a send and its
// receive differ in length, and when what arrives may overwrite what the same step sends.
func simulate(t failer, plans []Plan, src, dst [][]element) {
	t.Helper()
	simulateApart(t, plans, nil, src, dst)
}

// simulateApart is simulate with the input of the ranks in other vectors, where steps that send or merge input read it.
// If input is nil, it is in src and dst.
func simulateApart(t failer, plans []Plan, input, src, dst [][]element) {
	t.Helper()
	outgoing := func(r int, s Step) []element {
		if s.Forwards {
			return clone(dst[r][s.Send.Lo:s.Send.Hi])
		}
		if input != nil && s.SendsInput {
			return clone(input[r][s.Send.Lo:s.Send.Hi])
		}
		return clone(src[r][s.Send.Lo:s.Send.Hi])
	}
	type progress struct {
		step      int
		sent, got bool
		arrived   []element
	}
	at := make([]progress, len(plans))
	current := func(r int) (Step, bool) {
		if at[r].step == len(plans[r]) {
			return Step{}, false
		}
		return plans[r][at[r].step], true
	}
	for moved := true; moved; {
		moved = false
		for r := range plans {
			s, ok := current(r)
			if !ok {
				continue
			}
			if s.To == r && s.From == r {
				at[r] = progress{step: at[r].step, sent: true, got: true, arrived: outgoing(r, s)}
			} else if s.To != None && !at[r].sent {
				if there, ok := current(s.To); ok && there.From == r && !at[s.To].got {
					at[r].sent, at[s.To].got, at[s.To].arrived = true, true, outgoing(r, s)
				}
			}
			if s.To != None && !at[r].sent || s.From != None && !at[r].got {
				continue
			}
			check(t, r, s, len(at[r].arrived), len(dst[r]) > 0 && len(src[r]) > 0 && &src[r][0] == &dst[r][0])
			if input != nil && s.MergesInput {
				copy(dst[r][s.Recv.Lo:s.Recv.Hi], clone(input[r][s.Recv.Lo:s.Recv.Hi]))
			}
			merge(s, at[r].arrived, dst[r])
			at[r] = progress{step: at[r].step + 1}
			moved = true
		}
	}
	for r := range plans {
		if s, ok := current(r); ok {
			t.Fatalf("rank %d stuck at step %d: %v", r, at[r].step, s)
		}
	}
}

func check(t failer, r int, s Step, arrived int, oneVector bool) {
	t.Helper()
	if s.From != None && arrived != s.Recv.Len() {
		t.Fatalf("rank %d got %d elements: %v", r, arrived, s)
	}
	overlap := s.To != None && s.From != None && s.Send.Lo < s.Recv.Hi && s.Recv.Lo < s.Send.Hi
	if oneVector && overlap && s.Merge == Replace {
		t.Fatalf("rank %d overwrites what it sends: %v", r, s)
	}
}

func merge(s Step, arrived, dst []element) {
	for i, e := range arrived {
		at := &dst[s.Recv.Lo+i]
		switch s.Merge {
		case Left:
			*at = append(e, *at...)
		case Right:
			*at = append(*at, e...)
		case Replace, Swap:
			*at = e
		}
	}
}

func clone(v []element) []element {
	out := make([]element, len(v))
	for i, e := range v {
		out[i] = slices.Clone(e)
	}
	return out
}

// checkInput checks that the steps of p say where elements are a rank's input: no step before has received them. Steps
// that do not say so use none.
func checkInput(t failer, p Plan) {
	t.Helper()
	received := make([]bool, p.Extent())
	input := func(r Range) (some, all bool) {
		some, all = false, true
		for _, is := range received[r.Lo:r.Hi] {
			some, all = some || !is, all && !is
		}
		return some, all
	}
	for i, s := range p {
		if some, all := input(s.Send); s.To != None && s.Send.Len() > 0 && (some != all || s.SendsInput != all) {
			t.Fatalf("step %d sends input: some %t, all %t: %+v", i, some, all, p)
		}
		if some, all := input(s.Recv); s.From != None && s.Merge.Reduces() && s.Recv.Len() > 0 && (some != all || s.MergesInput != all) {
			t.Fatalf("step %d merges input: some %t, all %t: %+v", i, some, all, p)
		}
		if s.From != None {
			for e := s.Recv.Lo; e < s.Recv.Hi; e++ {
				received[e] = true
			}
		}
	}
}

// own returns vectors in which every element of rank r holds r's contribution.
func own(size, n int) [][]element {
	vec := make([][]element, size)
	for r := range vec {
		for range n {
			vec[r] = append(vec[r], element{r})
		}
	}
	return vec
}

// nothing returns vectors that have no rank's contribution.
func nothing(size, n int) [][]element {
	vec := own(size, n)
	for r := range vec {
		for i := range vec[r] {
			vec[r][i] = element{-1}
		}
	}
	return vec
}

// upTo are the ranks below n, in order.
func upTo(n int) element {
	e := make(element, n)
	for r := range e {
		e[r] = r
	}
	return e
}

// complete reports whether e holds every rank once, and if ordered in order.
func complete(e element, size int, ordered bool) bool {
	if !ordered {
		e = slices.Sorted(slices.Values(e))
	}
	return slices.Equal(e, upTo(size))
}
