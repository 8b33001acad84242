package call

import (
	"encoding/json"
	"testing"
)

// Ranks of other versions read these names.
func TestCallsInJSON(t *testing.T) {
	text, err := json.Marshal(Fingerprint{Seq: 7, Call: Call{Kind: KindReduce, Type: 2, Reduce: 3, Root: 4, Count: 5, Detail: 6}, Before: 8})
	if want := `{"seq":7,"call":{"Op":5,"Type":2,"Reduce":3,"Root":4,"Count":5,"Detail":6},"before":8}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}

func TestPack(t *testing.T) {
	c := Call{Kind: KindAllReduce, Type: 2, Reduce: 3, Root: -4, Count: 5, Detail: 6}
	if got := c.Pack().Call(); got != c {
		t.Errorf("got %+v, want %+v", got, c)
	}
}
