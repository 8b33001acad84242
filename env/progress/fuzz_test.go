package progress

import (
	"encoding/json"
	"testing"
)

// FuzzParse: what a worker sends is refused, or is within bounds and means the same when it is sent on.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"pid":7,"rank":1,"waits":[{"rank":1,"for":0,"in":"AllReduce #17"}],"suspect":{"rank":0,"text":"computes"},"flights":[{"rank":1}]}`))
	f.Add([]byte(`{"pace":{"group":"a","operations":1,"between":-1}}`))
	f.Add([]byte(`{"waits":[{"rank":-1}]}`))
	f.Add([]byte("null"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parse(text)
		if err != nil {
			return
		}
		if len(s.Waits) > maxWaits || len(s.Activity) > maxText {
			t.Fatalf("%d waits, and %d bytes of what it does", len(s.Waits), len(s.Activity))
		}
		for _, w := range s.Waits {
			if w.Rank < 0 || w.For < 0 || len(w.In) > maxText {
				t.Fatalf("rank %d waits for rank %d", w.Rank, w.For)
			}
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(again); err != nil {
			t.Fatal(err)
		}
	})
}
