package diagnosis

import (
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/testing/testkit"
)

// testLimit is how long a document may be.
const testLimit = 8 << 10

// A document fits, whatever is in it.
func TestDocumentsAreBounded(t *testing.T) {
	worst := strings.Repeat("\x01", MaxText) // JSON writes each byte as six
	r := &WaitReport{Suspect: &Suspect{0, Activity{Text: worst}}}
	for i := range 2 * longestChain {
		r.Chain = append(r.Chain, Wait{Rank: 100 + i, For: 101 + i, In: worst})
	}
	b := r.Encode(2 * testLimit)
	got := DecodeWaitReport(b, 1000)
	if len(b) > 2*testLimit || got == nil || got.Suspect == nil || len(got.Suspect.Text) != MaxText || len(got.Chain) == 0 {
		t.Errorf("a report of %d bytes was read as %+v", len(b), got)
	}
	f := &Failure{Kind: Absent, Rank: 2, Text: strings.Repeat("\x01", 2*testLimit), Missing: slices.Repeat([]int{1}, testLimit)}
	b = f.Encode(3, testLimit)
	if got := DecodeFailure(b, 3, 4); len(b) > testLimit || got.Kind != Absent || got.Finder != 3 || len(got.Missing) == 0 {
		t.Errorf("a failure of %d bytes was read as %+v", len(b), got)
	}
}

func FuzzDecodeFailure(f *testing.F) {
	f.Add([]byte(`{"kind":"peer","rank":1,"text":"died"}`))
	f.Add([]byte(`{"kind":"mismatch","rank":1,"calls":[{},{},{}]}`))
	f.Add([]byte(`{"kind":"deadlock","rank":1,"waits":[{"rank":0,"for":7}]}`))
	f.Add([]byte(`{"kind":"absent","rank":1,"missing":[1,2,-1],"late":true}`))
	f.Add([]byte(`{"kind":"abort","rank":1,"text":"\u001b[2J\nnext"}`))
	f.Add([]byte(`nonsense`))
	f.Fuzz(func(t *testing.T, b []byte) {
		testkit.AllocatesAtMost(t, 64*len(b), func() { _ = DecodeFailure(b, 1, 4) })
		got := DecodeFailure(b, 1, 4)
		ranks := append([]int{got.Rank, got.Finder}, got.Missing...)
		for _, w := range got.Waits {
			ranks = append(ranks, w.Rank, w.For)
		}
		if text := got.Text; text != auth.Printable(text) {
			t.Errorf("%q is told as %q", b, text)
		}
		if slices.ContainsFunc(ranks, func(r int) bool { return r < 0 || r > 3 }) || len(got.Calls) > 2 || got.Kind == "" {
			t.Errorf("%q was read as %+v", b, got)
		}
		if again := got.Encode(0, testLimit); len(again) > testLimit {
			t.Errorf("%q is told on in %d bytes", b, len(again))
		}
	})
}

func FuzzDecodeWaitReport(f *testing.F) {
	f.Add([]byte(`{"seq":3,"at":{"seq":1},"activity":{"text":"it sleeps","ago":5},"chain":[{"rank":1,"for":2,"in":"Recv #1"}],"suspect":{"rank":2,"text":"sleeps"}}`))
	f.Add([]byte(`{"chain":[{"rank":9}]}`))
	f.Add([]byte(`nonsense`))
	f.Fuzz(func(t *testing.T, b []byte) {
		testkit.AllocatesAtMost(t, 64*len(b), func() { DecodeWaitReport(b, 4) })
		r := DecodeWaitReport(b, 4)
		if r == nil {
			return
		}
		ranks := []int{}
		for _, w := range r.Chain {
			ranks = append(ranks, w.Rank, w.For)
		}
		if r.Suspect != nil {
			ranks = append(ranks, r.Suspect.Rank)
		}
		if len(r.Chain) > longestChain || slices.ContainsFunc(ranks, func(n int) bool { return n < 0 || n > 3 }) {
			t.Errorf("%q was read as %+v", b, r)
		}
	})
}
