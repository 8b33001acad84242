package bootstrap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/protocol"
	"github.com/gorun/gorun/comm/internal/store/memstore"
	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/testing/testkit"
)

// What ranks say of themselves and of the world takes memory in proportion to it, however short, and to no more than a
// world needs.

func FuzzParseInfo(f *testing.F) {
	f.Add([]byte(`{"addr":"127.0.0.1:1","host":"a","pid":1,"cpus":"0-3","tls":true}`))
	f.Add([]byte("{\"host\":\"\\u001b[2Ja\"}"))
	f.Add([]byte(`{"host":"` + strings.Repeat("a", longestInfo) + `"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		testkit.AllocatesAtMost(t, 8*min(len(b), longestInfo), func() { _, _ = parseInfo(b) })
		if r, err := parseInfo(b); err == nil && (len(b) > longestInfo || r.Host != auth.Printable(r.Host)) {
			t.Errorf("%q was read as %+v", b, r)
		}
	})
}

func FuzzParseWorld(f *testing.F) {
	const size = 3
	f.Add([]byte(`{"id":"1","ranks":[{"addr":"127.0.0.1:1"},{"addr":"127.0.0.1:2"},{"addr":"127.0.0.1:3","host":"\u001b"}]}`))
	f.Add([]byte(`{"missing":[1,2]}`))
	f.Add([]byte(`{"missing":[1,3]}`))
	f.Add([]byte(`{"ranks":[` + strings.Repeat("{},", 1<<20) + `{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		const most = (size + 1) * longestInfo
		testkit.AllocatesAtMost(t, 256*min(len(b), most), func() { _, _ = parseWorld(b, size) })
		w, err := parseWorld(b, size)
		if err != nil {
			return
		}
		_ = w.check(place{rank: 1, size: size}, Info{})
		for _, r := range w.Missing {
			if r < 0 || r >= size {
				t.Errorf("%q: rank %d is missing", b, r)
			}
		}
		for _, r := range w.Ranks {
			if r.Host != auth.Printable(r.Host) {
				t.Errorf("%q: host %q", b, r.Host)
			}
		}
	})
}

// The most that a rank can have to say is taken.
func TestInfoThatIsLong(t *testing.T) {
	r := self("127.0.0.1:1")
	r.Tuning, r.CPUs = strings.Repeat("all_reduce=ring,", 200), strings.Repeat("1000-1001,", 500)
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseInfo(b); err != nil {
		t.Error(err)
	}
}

// An Info that is long, or becomes long when rank 0 writes it again, is blamed on the rank that wrote it, in few words.
func TestNonsense(t *testing.T) {
	for info, want := range map[string]string{
		`{"host":"` + strings.Repeat("v", longestInfo) + `"}`:     "16395 bytes, limit 16384",
		`{"host":"` + strings.Repeat("v", longestHost+1) + `"}`:   "a host name of 256 bytes, limit 255",
		`{"host":"` + strings.Repeat(`\u0001`, 100) + `"}`:        "a host name of 300 bytes, limit 255",
		`{"tuning":"` + strings.Repeat("<", longestInfo/2) + `"}`: "bytes as rank 0 encodes it, limit 16384",
		`[]`: "json: cannot unmarshal array into Go value of type bootstrap.Info",
	} {
		s := memstore.New()
		if err := s.Set(t.Context(), "1/rank/1", []byte(info)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // that rank never reads the world
		t.Cleanup(cancel)
		_, err := meet(ctx, s, 1, place{size: 2, meet: "the store"}, self("127.0.0.1:1"))
		if err == nil || !strings.Contains(err.Error(), "rank 1 wrote nonsense about itself: ") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%.40s…: %v, want %s", info, err, want)
		}
	}
}

// Rank 0 is not trusted either.
func TestNonsenseOfRankZero(t *testing.T) {
	long := `{"ranks":[{},{"host":"` + strings.Repeat("v", longestHost+1) + `"}]}`
	if _, err := parseWorld([]byte(long), 2); err == nil || err.Error() != "rank 1: a host name of 256 bytes, limit 255" {
		t.Errorf("got %v", err)
	}
}

// How long ranks were waited for does not count the time in which rank 0 then lets the others know.
func TestMissingRanksSaysHowLongItWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		if _, err := s.CompareAndSwap(t.Context(), "1/rank/1", nil, []byte("{}")); err != nil { // it came, and never reads that rank 0 gives up
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := meet(ctx, s, 1, place{size: 3, meet: "the store"}, self("127.0.0.1:1"))
		missing, ok := errors.AsType[*MissingError](err)
		if !ok || missing.After != time.Minute || time.Since(start) <= time.Minute {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// A stoppedStore answers so many calls, and then no more, as one does whose process is stopped, or has ended with err.
type stoppedStore struct {
	store.Store
	answers int
	err     error
}

func (s *stoppedStore) call(ctx context.Context) error {
	if s.answers--; s.answers >= 0 {
		return nil
	}
	if s.err == nil {
		<-ctx.Done()
	}
	return cmp.Or(s.err, ctx.Err())
}

func (s *stoppedStore) Set(ctx context.Context, key string, value []byte) error {
	return errors.Join(s.call(ctx), s.Store.Set(ctx, key, value))
}

func (s *stoppedStore) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := s.Store.Get(ctx, key)
	return value, errors.Join(s.call(ctx), err)
}

func (s *stoppedStore) Add(ctx context.Context, key string, n int64) (int64, error) {
	sum, err := s.Store.Add(ctx, key, n)
	return sum, errors.Join(s.call(ctx), err)
}

func (s *stoppedStore) CompareAndSwap(ctx context.Context, key string, old, value []byte) ([]byte, error) {
	if err := s.call(ctx); err != nil {
		return nil, err
	}
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

// Rank 0 may be stopped, or end, at any point of an Init: the error of another rank names it, since that serves the
// store.
func TestAStoppedStoreIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ err, want error }{
		"stopped": {nil, context.DeadlineExceeded},
		"ended":   {io.EOF, io.EOF},
		"reset":   {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, syscall.ECONNRESET},
	} {
		for answers := range 5 { // calls of a rank: compare and swap, add, set, get, set
			t.Run(fmt.Sprint(name, answers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all := memstore.New()
					world, err := json.Marshal(worldDoc{ID: 1, Ranks: []Info{self("127.0.0.1:1"), self("127.0.0.1:2")}})
					if err != nil {
						t.Fatal(err)
					}
					if err := all.Set(t.Context(), "1/"+worldKey, world); err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					s := &stoppedStore{all, answers, c.err}
					p := place{rank: 1, size: 2, master: "node0:29500", meet: "the store", began: time.Now()}
					generation, _, err := (&claims{taken: map[string]bool{}}).claim(ctx, s, p)
					if err == nil {
						_, err = meet(ctx, s, generation, p, self("127.0.0.1:2"))
					}
					if missing, ok := errors.AsType[*MissingError](err); !ok || !slices.Equal(missing.Missing, []int{0}) || missing.Size != 2 || missing.After != time.Since(p.began) {
						t.Errorf("got %#v, want rank 0 to be missing", err)
					}
					if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), "rank 0, which serves the store at node0:29500: ") {
						t.Errorf("got %v, want an error that names rank 0", err)
					}
				})
			})
		}
	}
}

// TestRanksOfOtherVersions are refused by each other. That is found before differences in TLS: in another version, all
// else may differ.
func TestRanksOfOtherVersions(t *testing.T) {
	for _, protocols := range [][2]int{{1, 1}, {1, 2}, {0, 1}} {
		var ranks [2]Info
		for i, number := range protocols {
			ranks[i] = self(fmt.Sprint("127.0.0.1:", i+1))
			ranks[i].Host, ranks[i].Protocol, ranks[i].TLS = fmt.Sprint("host", i), number, number == 2
		}
		s := memstore.New()
		var wg sync.WaitGroup
		for rank, other := range []int{1, 0} {
			wg.Go(func() {
				_, err := meet(t.Context(), s, 1, place{rank: rank, size: 2}, ranks[rank])
				want := fmt.Sprintf("comm: Init: rank %d on host%d has another version of comm (its protocol has number %d, and this rank's %d): build all ranks from the same version",
					other, other, protocols[other], protocols[rank])
				if refused := protocols[0] != protocols[1]; (err != nil) != refused || refused && err.Error() != want {
					t.Errorf("%d: rank %d: %v, want %t, %s", protocols, rank, err, refused, want)
				}
			})
		}
		wg.Wait()
	}
	me, err := json.Marshal(self("127.0.0.1:1"))
	if want := fmt.Sprintf(`,"protocol":%d}`, protocol.Version); err != nil || !strings.Contains(string(me), want) {
		t.Errorf("this rank says %s, %v, want %s", me, err, want)
	}
}
