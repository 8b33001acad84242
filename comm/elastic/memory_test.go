package elastic

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/gorun/gorun/comm"
)

// A layered is a value with other memory behind it, in every way that package elastic keeps.
type layered struct {
	Slice   []float32
	Pointer *[4]int32
	Map     map[string][]int64
	Nested  [2]struct{ Deep [][]uint8 }
	Any     any
	Next    *layered
	Left    []float32 `cbor:"-"`
	private []float32 `cbor:"-"`
	Name    string
	At      time.Time
}

func newLayered() *layered {
	l := &layered{Slice: make([]float32, 4), Pointer: new([4]int32), Map: map[string][]int64{"a": make([]int64, 4)}, Any: make([]int16, 4), Left: make([]float32, 4), private: make([]float32, 4)}
	l.Nested[1].Deep = [][]uint8{nil, make([]uint8, 4)}
	l.Next = l // no value that CBOR can encode, and the walk ends
	return l
}

// A matrix encodes itself, and keeps its elements to itself, as those of some libraries do.
type matrix struct {
	rows    int
	data    []float64
	pairs   [2]*[4]int32
	scratch []float64 `cbor:"-"`
}

func newMatrix() *matrix {
	return &matrix{2, make([]float64, 4), [2]*[4]int32{nil, new([4]int32)}, make([]float64, 4)}
}

func (m matrix) MarshalBinary() ([]byte, error)  { return bytesOf(m.data), nil }
func (m *matrix) UnmarshalBinary(b []byte) error { copy(bytesOf(m.data), b); return nil }

// A vector is a slice that encodes itself.
type vector []float64

func (v vector) MarshalBinary() ([]byte, error)  { return bytesOf(v), nil }
func (v *vector) UnmarshalBinary(b []byte) error { copy(bytesOf(*v), b); return nil }

func bytesOf[T comm.Element](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// TestMemory: the memory of an item is that of everything of which a commit is made, and no other.
func TestMemory(t *testing.T) {
	l, at, numbers := newLayered(), time.Now(), make([]float64, 4)
	m, own := newMatrix(), vector(make([]float64, 4))
	both := struct {
		M matrix
		P *[4]int32
	}{*m, m.pairs[1]}
	behind := &l
	for name, c := range map[string]struct {
		item Item
		of   []byte
		want bool
	}{
		"slice":     {Slice("x", numbers), bytesOf(numbers[3:]), true},
		"variable":  {Value("x", l), unsafe.Slice((*byte)(unsafe.Pointer(&l.At)), 1), true},
		"encoded":   {Value("x", &at), unsafe.Slice((*byte)(unsafe.Pointer(&at)), 1), true},
		"data":      {Value("x", m), bytesOf(m.data[3:]), true},
		"pairs":     {Value("x", &both), bytesOf(m.pairs[1][3:]), true},
		"scratch":   {Value("x", m), bytesOf(m.scratch[:1]), false},
		"vector":    {Value("x", &own), bytesOf(own[3:]), true},
		"elements":  {Value("x", l), bytesOf(l.Slice[3:]), true},
		"a pointer": {Value("x", &behind), bytesOf(l.Slice[:1]), true},
		"pointer":   {Value("x", l), bytesOf(l.Pointer[3:]), true},
		"map":       {Value("x", l), bytesOf(l.Map["a"][3:]), true},
		"nested":    {Value("x", l), l.Nested[1].Deep[1][3:], true},
		"any":       {Value("x", l), bytesOf(l.Any.([]int16)[3:]), true},
		"left out":  {Value("x", l), bytesOf(l.Left[:1]), false},
		"private":   {Value("x", l), bytesOf(l.private[:1]), false},
		"other":     {Value("x", l), bytesOf(numbers[:1]), false},
	} {
		found := false
		c.item.memory(func(b []byte) {
			from, at := uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(unsafe.Pointer(unsafe.SliceData(c.of)))
			found = found || from <= at && at < from+uintptr(len(b))
		})
		if found != c.want {
			t.Errorf("%s: it belongs to the item: %t", name, found)
		}
	}
}

// TestMemoryOfDeepValues: the walk ends before the stack does. Such a value cannot be encoded.
func TestMemoryOfDeepValues(t *testing.T) {
	type node struct{ Next *node }
	var list *node
	for range 100_000 {
		list = &node{list}
	}
	item, visits := Value("list", &list), 0
	item.memory(func([]byte) { visits++ })
	if visits > mostDepth {
		t.Errorf("the walk took %d steps", visits)
	}
	if _, err := pack(nil, []Item{item}); err == nil {
		t.Error("the list has been encoded")
	}
}

// TestMemoryOfTheDeepestValue that can be encoded: the walk comes to its end.
func TestMemoryOfTheDeepestValue(t *testing.T) {
	end := make([]int32, 1)
	var value any = end
	for {
		next := any([]any{value})
		for range 31 {
			behind := next
			next = &behind
		}
		if _, err := codec.Marshal(next); err != nil {
			break
		}
		value = next
	}
	found := false
	Value("deep", &value).memory(func(b []byte) {
		found = found || unsafe.SliceData(b) == unsafe.SliceData(bytesOf(end))
	})
	if !found {
		t.Error("the walk has not found it")
	}
}

// TestCommitOfValuesDuringAnOperation: an operation that writes to what a value points to is noticed as well.
func TestCommitOfValuesDuringAnOperation(t *testing.T) {
	checked := make(chan struct{})
	wantNoErrors(t, runJob(t, "shm", 2, func(run runFunc) error {
		weights := map[string][]int32{"a": make([]int32, 100)}
		s, err := NewState(Value("weights", &weights))
		if err != nil {
			return err
		}
		return run(s, func(ctx context.Context, world *comm.Group) error {
			if world.Rank() == 1 {
				<-checked
				return comm.AllReduce(ctx, world, weights["a"], comm.Sum)
			}
			w := comm.IAllReduce(world, weights["a"], comm.Sum)
			err := s.Commit()
			close(checked)
			if comm.ExitCode(err) != 2 || !strings.Contains(err.Error(), `is under way, and writes to "weights"`) {
				t.Errorf("the commit: %v", err)
			}
			return errors.Join(w.Wait(ctx), s.Commit())
		})
	}))
}
