package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/comm/internal/testing/schedule"
)

// A step of a litmus test: an access to a word, x or y.
type op struct {
	access schedule.Access
	at     int // of the word
	value  byte
}

const (
	x = 0
	y = 128
)

func load(at int) op             { return op{access: schedule.LoadPlain, at: at} }
func acquire(at int) op          { return op{access: schedule.LoadAcquire, at: at} }
func put(at int, v byte) op      { return op{schedule.StorePlain, at, v} }
func past(at int, v byte) op     { return op{schedule.StorePast, at, v} }
func release(at int, v byte) op  { return op{schedule.StoreRelease, at, v} }
func full(at int, v byte) op     { return op{schedule.StoreFull, at, v} }
func update(at int) op           { return op{access: schedule.Update, at: at} }
func fence(a schedule.Access) op { return op{access: a} }
func threads(t ...[]op) [][]op   { return t }
func does(ops ...op) []op        { return ops }

// play carries out ops and returns what its loads have seen.
func play(m *schedule.Machine, ops []op) (seen string) {
	for _, o := range ops {
		switch b := []byte{o.value}; o.access {
		case schedule.LoadPlain, schedule.LoadAcquire:
			m.Load(b, o.at, o.access)
			seen += fmt.Sprint(b[0])
		case schedule.Update:
			m.Update(o.at, func(v uint32) uint32 { return v + 1 })
		case schedule.StoreFence, schedule.FenceThread, schedule.FenceAll:
			m.Fence(o.access)
		default:
			m.Store(o.at, b, o.access)
		}
	}
	return seen
}

// The classic tests of memory models: whether an outcome can be.
func TestLitmus(t *testing.T) {
	for _, c := range []struct {
		name      string
		threads   [][]op
		outcome   string // what the threads' loads have seen
		tso, weak bool
	}{
		{"store buffering", threads(does(put(x, 1), load(y)), does(put(y, 1), load(x))), "0 0", true, true},
		{"the same with atomics", threads(does(full(x, 1), acquire(y)), does(full(y, 1), acquire(x))), "0 0", false, false},
		{"the same with a release and an acquire", threads(does(release(x, 1), acquire(y)), does(release(y, 1), acquire(x))), "0 0", true, false},
		{"the same with updates", threads(does(put(x, 1), update(256), load(y)), does(put(y, 1), update(320), load(x))), "0 0", false, false},
		{"the same with one fence on all", threads(does(put(x, 1), load(y)), does(put(y, 1), fence(schedule.FenceAll), load(x))), "0 0", false, false},
		{"message passing", threads(does(put(x, 1), put(y, 1)), does(load(y), load(x))), "  10", false, true},
		{"the same with a release only", threads(does(put(x, 1), release(y, 1)), does(load(y), load(x))), "  10", false, true},
		{"the same with an acquire only", threads(does(put(x, 1), put(y, 1)), does(acquire(y), load(x))), "  10", false, true},
		{"the same with both", threads(does(put(x, 1), release(y, 1)), does(acquire(y), load(x))), "  10", false, false},
		{"the same past the caches", threads(does(past(x, 1), put(y, 1)), does(load(y), load(x))), "  10", true, true},
		{"the same with a fence", threads(does(past(x, 1), fence(schedule.StoreFence), release(y, 1)), does(acquire(y), load(x))), "  10", false, false},
		{"a release does not keep what comes later", threads(does(release(x, 1), put(y, 1)), does(acquire(y), acquire(x))), "  10", false, true},
		{"an acquire does not keep what comes before", threads(does(put(x, 1), release(y, 1)), does(load(x), acquire(y))), "  01", true, true},
		{"a sequence lock without its fence", threads(does(full(x, 1), full(y, 1)), does(load(y), acquire(x))), "  10", false, true},
		{"the same with it", threads(does(full(x, 1), full(y, 1)), does(load(y), full(256, 1), acquire(x))), "  10", false, false},
		{"the same with a fence of the thread", threads(does(full(x, 1), full(y, 1)), does(load(y), fence(schedule.FenceThread), acquire(x))), "  10", false, false},
		{"message passing with fences of both", threads(does(put(x, 1), fence(schedule.FenceThread), put(y, 1)), does(load(y), fence(schedule.FenceThread), load(x))), "  10", false, false},
		{"store buffering with fences of both", threads(does(put(x, 1), fence(schedule.FenceThread), load(y)), does(put(y, 1), fence(schedule.FenceThread), load(x))), "0 0", true, true},
		{"reading backwards", threads(does(put(x, 1)), does(load(x), load(x))), "  10", false, false},
		{"reading what one has written", threads(does(put(x, 1), load(x))), " 0", false, false},
		{"early stores", threads(does(load(x), put(y, 1)), does(load(y), put(x, 1))), "1 1", false, false},
		{"two readers that disagree", threads(does(full(x, 1)), does(full(y, 1)), does(acquire(x), acquire(y)), does(acquire(y), acquire(x))), "    10 10", false, false},
	} {
		for model, want := range map[schedule.Model]bool{schedule.TSO: c.tso, schedule.Weak: c.weak} {
			m := schedule.New(make([]byte, 512), model)
			found, runs := false, 0
			for e := schedule.NewExhaustive(5); runs == 0 || e.More(); runs++ {
				seen := make([]string, len(c.threads))
				err := m.Run(e, func() {
					for i, ops := range c.threads {
						m.Go(fmt.Sprint(i), func() { seen[i] = play(m, ops) })
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				found = found || slices.Equal(strings.Fields(strings.Join(seen, " ")), strings.Fields(c.outcome))
			}
			if found != want {
				t.Errorf("%s, %v: seen %v in %d orders, want %v", c.name, model, found, runs, want)
			}
		}
	}
}
