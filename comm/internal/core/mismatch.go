package core

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// A CallOf is what a rank called, in words.
type CallOf struct {
	Rank int // world rank
	Call string
}

// Differ says what two ranks called that differs, in order of rank, because of which f is the failure of e's call. The
// first calls that differ have numbers from first to last; 0: they are no collectives.
func (e *Error) Differ(f *diagnosis.Failure) (calls []CallOf, first, last uint64) {
	for _, c := range f.Calls {
		calls = append(calls, CallOf{c.Rank, call.Describe(c.Call)})
	}
	if len(f.Calls) != 2 {
		return calls, 0, 0
	}
	a, b := &f.Calls[0], &f.Calls[1]
	first, last = min(a.Seq, b.Seq), min(a.Seq, b.Seq)
	switch {
	case f.Earlier || a.Seq != b.Seq:
		first = min(f.Agreed+1, last)
		calls[0].Call = fmt.Sprintf("#%d %s", a.Seq, calls[0].Call)
		calls[1].Call = fmt.Sprintf("#%d %s", b.Seq, calls[1].Call)
	case a.Call != b.Call && calls[0].Call == calls[1].Call: // lengths of AllReduceCoalesced, for instance
		calls[0].Call += fmt.Sprintf(" with checksum %08x", a.Call.Detail)
		calls[1].Call += fmt.Sprintf(" with checksum %08x", b.Call.Detail)
	case a.Call == b.Call:
		elem := max(e.Group.wireSize(a.Call), 1)
		calls[0].Call += fmt.Sprintf(" expecting %d elements from rank %d", a.Bytes/elem, b.Rank)
		calls[1].Call += fmt.Sprintf(" sending %d elements to rank %d", b.Bytes/elem, a.Rank)
	}
	if a.Rank > b.Rank {
		calls[0], calls[1] = calls[1], calls[0]
	}
	return calls, first, last
}
