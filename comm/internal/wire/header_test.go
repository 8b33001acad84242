package wire

import (
	"testing"

	"github.com/gorun/gorun/comm/internal/call"
)

func FuzzParse(f *testing.F) {
	f.Add((Header{Kind: Eager, Tag: -1, Context: 1, Size: 3, ID: 4, Fingerprint: call.Fingerprint{Seq: 2, Call: call.Call{Kind: 1, Type: 2, Reduce: 3, Root: -4, Count: 5, Detail: 6}}}).Append(nil))
	f.Add(make([]byte, HeaderSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < HeaderSize {
			return
		}
		h, err := Parse(b[:HeaderSize])
		if err != nil {
			return
		}
		again, err := Parse(h.Append(nil))
		if err != nil || again != h {
			t.Errorf("%+v came back as %+v, %v", h, again, err)
		}
	})
}
