package outstanding

import (
	"testing"

	"pgregory.net/rapid"
)

// TestWriterOf compares with a list of all operations that have not ended.
func TestWriterOf(t *testing.T) {
	memory := make([]byte, 64)
	part := func(t *rapid.T) (buf []byte, from, to int) {
		from = rapid.IntRange(0, 64).Draw(t, "from")
		to = rapid.IntRange(from, 64).Draw(t, "to")
		return memory[from:to], from, to
	}
	rapid.Check(t, func(t *rapid.T) {
		records, cleanFrom = nil, 0
		type op struct {
			from, to int
			ended    bool
		}
		var ops []*op
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				buf, from, to := part(t)
				o := &op{from: from, to: to}
				ops = append(ops, o)
				Add("op", func() bool { return o.ended }, [][]byte{nil, buf}, [][]byte{buf})
			case 1:
				if len(ops) > 0 {
					rapid.SampledFrom(ops).Draw(t, "ends").ended = true
				}
			case 2:
				buf, from, to := part(t)
				want := ""
				for _, o := range ops {
					if !o.ended && o.from < o.to && o.from < to && from < o.to {
						want = "op"
					}
				}
				if got := WriterOf(buf); from < to && got != want {
					t.Fatalf("writer of %d to %d: %q, want %q", from, to, got, want)
				}
				if got := ReaderOf(buf); from < to && got != want {
					t.Fatalf("reader of %d to %d: %q, want %q", from, to, got, want)
				}
			}
		}
		for _, o := range ops {
			o.ended = true
		}
		if WriterOf(memory) != "" || len(records) != 0 {
			t.Fatalf("%d records of operations that have ended", len(records))
		}
	})
}

// TestOldOnesAreForgotten: operations that end in the order in which they start leave no records, so their buffers can be freed.
func TestOldOnesAreForgotten(t *testing.T) {
	records, cleanFrom = nil, 0
	last := new(bool)
	for range 3 * minRecords {
		*last = true
		ended := new(bool)
		last = ended
		Add("op", func() bool { return *ended }, [][]byte{make([]byte, 1)}, nil)
		if len(records) != 1 {
			t.Fatalf("%d records, want the one of the operation under way", len(records))
		}
	}
}
