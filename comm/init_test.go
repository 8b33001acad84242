package comm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// initAll calls Init as every rank in ranks of size at once and returns the groups and errors by place in ranks.
func initAll(t testing.TB, ranks []int, size int, opts ...Option) ([]*Group, []error) {
	t.Helper()
	groups, errs := make([]*Group, len(ranks)), make([]error, len(ranks))
	var wg sync.WaitGroup
	for i, r := range ranks {
		wg.Go(func() { groups[i], errs[i] = Init(t.Context(), slices.Concat(opts, []Option{WithRank(r, size)})...) })
	}
	wg.Wait()
	return groups, errs
}

// wantWorld checks that the groups are one world that works, and closes them.
func wantWorld(t testing.TB, groups []*Group, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if t.Failed() {
		return
	}
	w := &testWorld{t: t, groups: groups}
	w.run(func(ctx context.Context, g *Group) error {
		v := []int{g.Rank()}
		if err := AllReduce(ctx, g, v, Sum); err != nil || v[0] != len(groups)*(len(groups)-1)/2 {
			return fmt.Errorf("got %d, %v", v[0], err)
		}
		return nil
	})
	w.close()
}

func upTo(n int) []int {
	ranks := make([]int, n)
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
}

func TestWaysToMeet(t *testing.T) {
	for _, size := range []int{1, 2, 4} {
		ways := map[string][]Option{
			"tcp":   {WithInitMethod("tcp://" + testkit.ReservedAddr(t))},
			"file":  {WithInitMethod("file://" + filepath.Join(t.TempDir(), "meet"))},
			"store": {WithStore(NewMemStore())},
			"token": {WithInitMethod("tcp://" + testkit.ReservedAddr(t)), WithToken(longToken)},
			"tls":   {WithInitMethod("tcp://" + testkit.ReservedAddr(t)), WithToken(longToken), WithTLS()},
			"tls from machine to machine": {
				WithInitMethod("tcp://" + testkit.ReservedAddr(t)), WithToken(longToken), WithTLS(), option(notNear),
			},
			"several connections": {WithStore(NewMemStore()), WithTransport("tcp"), WithConnections(3)},
			"from machine to machine": {
				WithInitMethod("tcp://" + testkit.ReservedAddr(t)), WithToken(longToken), WithTransport("tcp"), option(notNear),
			},
		}
		for name, opts := range ways {
			t.Run(fmt.Sprintf("%s %d", name, size), func(t *testing.T) {
				groups, errs := initAll(t, upTo(size), size, append(opts, WithTimeout(20*time.Second))...)
				wantWorld(t, groups, errs)
			})
		}
	}
}

const longToken = "a secret that all know"

// notNear makes every connection one that leaves the machine.
func notNear(c *config) { c.Near = func(net.Conn) bool { return false } }

func TestRankFromTheURL(t *testing.T) {
	url := "tcp://" + testkit.ReservedAddr(t) + "?world_size=2&rank="
	groups, errs := make([]*Group, 2), make([]error, 2)
	var wg sync.WaitGroup
	for r := range 2 {
		wg.Go(func() { groups[r], errs[r] = Init(t.Context(), WithInitMethod(url+fmt.Sprint(r))) })
	}
	wg.Wait()
	wantWorld(t, groups, errs)
}

func TestAFileCanBeUsedAgain(t *testing.T) {
	way := WithInitMethod("file://" + filepath.Join(t.TempDir(), "meet"))
	for range 2 {
		groups, errs := initAll(t, upTo(3), 3, way, WithTimeout(20*time.Second))
		wantWorld(t, groups, errs)
	}
}

func TestAFileOfAnEarlierRunIsNotMixedIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meet")
	way := WithInitMethod("file://" + path)
	var missing *MissingRanksError // rank 1, which never came
	for timeout := 50 * time.Millisecond; missing == nil; timeout *= 2 {
		_, errs := initAll(t, []int{0}, 2, way, WithTimeout(timeout))
		if !errors.As(errs[0], &missing) && !errors.Is(errs[0], context.DeadlineExceeded) { // a busy machine may not even let rank 0 come
			t.Fatalf("got %v", errs[0])
		}
	}
	groups, errs := initAll(t, upTo(2), 2, way, WithTimeout(20*time.Second))
	wantWorld(t, groups, errs)
}

func TestMissingRanksAreNamedByAllThatCame(t *testing.T) {
	for name, c := range map[string]struct {
		come, missing []int
		opts          []Option
	}{
		"at rank 0's store": {[]int{0, 2}, []int{1, 3}, []Option{WithInitMethod("tcp://" + testkit.ReservedAddr(t))}},
		"in a file":         {[]int{0, 1, 3}, []int{2}, []Option{WithInitMethod("file://" + filepath.Join(t.TempDir(), "meet"))}},
		"rank 0, in a file": {[]int{1, 2}, []int{0, 3}, []Option{WithInitMethod("file://" + filepath.Join(t.TempDir(), "meet"))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, errs := initAll(t, c.come, 4, append(c.opts, WithTimeout(time.Second))...)
			for i, err := range errs {
				var missing *MissingRanksError
				if !errors.As(err, &missing) || !slices.Equal(missing.Missing, c.missing) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("rank %d got %v, want ranks %v to be missing", c.come[i], err, c.missing)
				}
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
	t.Run("rank 0, who serves the store", func(t *testing.T) {
		way := "tcp://" + testkit.ReservedAddr(t)
		_, errs := initAll(t, []int{1}, 2, WithInitMethod(way), WithTimeout(500*time.Millisecond))
		var missing *MissingRanksError
		if !errors.As(errs[0], &missing) || !slices.Equal(missing.Missing, []int{0}) || missing.Size != 2 || missing.After < 500*time.Millisecond || !errors.Is(missing, context.DeadlineExceeded) {
			t.Errorf("got %v, want rank 0 to be missing", errs[0])
		}
		if errs[0] == nil || !strings.Contains(errs[0].Error(), "connection refused") || !strings.Contains(errs[0].Error(), "rank 0") {
			t.Errorf("got %v, want it to name rank 0 and the refused connection", errs[0])
		}
	})
}

// As torch's destroy_process_group and init_process_group do, at a store that stays: ranks that come to the next world
// early wait for the others.
func TestInitAfterClose(t *testing.T) {
	store := NewMemStore()
	var wg sync.WaitGroup
	for r := range 3 {
		wg.Go(func() {
			for i := range 20 {
				g, err := Init(t.Context(), WithStore(store), WithRank(r, 3), WithTimeout(20*time.Second))
				if err != nil {
					t.Errorf("world %d, rank %d: %v", i, r, err)
					return
				}
				v := []int{i}
				if err := AllReduce(t.Context(), g, v, Sum); err != nil || v[0] != 3*i {
					t.Errorf("world %d, rank %d: got %d, %v", i, r, v[0], err)
				}
				if r == 0 {
					_, err := Init(t.Context(), WithStore(store), WithRank(0, 3))
					if err == nil || !strings.Contains(err.Error(), "it was called twice: as rank 0") {
						t.Errorf("joined twice: %v", err)
					}
				}
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Ranks that have given up may try again, with the one that was missing.
func TestInitAfterInitHasFailed(t *testing.T) {
	testkit.Once(t)
	store := NewMemStore()
	_, errs := initAll(t, []int{0, 1}, 3, WithStore(store), WithTimeout(500*time.Millisecond))
	_, late := initAll(t, []int{2}, 3, WithStore(store), WithTimeout(500*time.Millisecond))
	for _, err := range append(errs, late...) {
		var missing *MissingRanksError
		if !errors.As(err, &missing) || !slices.Equal(missing.Missing, []int{2}) {
			t.Fatalf("got %v", err)
		}
	}
	groups, errs := initAll(t, upTo(3), 3, WithStore(store), WithTimeout(20*time.Second))
	wantWorld(t, groups, errs)
}

func TestTwoProcessesOfOneRank(t *testing.T) {
	store := NewMemStore()
	groups, errs := initAll(t, []int{0, 1, 1}, 2, WithStore(store), WithTimeout(20*time.Second))
	failed := 0
	for i, err := range errs {
		if err != nil {
			failed++
			if i == 0 || ExitCode(err) != 2 || err.Error() != "comm: Init: it was called twice: as rank 1 at the store given, use the world that it has returned, or close that first" {
				t.Errorf("got %v", err)
			}
			continue
		}
		if err := groups[i].Close(); err != nil {
			t.Error(err)
		}
	}
	if failed != 1 {
		t.Errorf("%d of 3 failed, want one", failed)
	}
}

func TestDifferentWorldSizes(t *testing.T) {
	store := NewMemStore()
	var wg sync.WaitGroup
	wg.Go(func() {
		if g, err := Init(t.Context(), WithStore(store), WithRank(0, 2), WithTimeout(20*time.Second)); err == nil {
			defer g.Close()
		}
	})
	_, err := Init(t.Context(), WithStore(store), WithRank(1, 3), WithTimeout(20*time.Second))
	if ExitCode(err) != 2 || err.Error() != "comm: Init: WORLD_SIZE is 3 here and 2 on rank 0: set the same for every rank" {
		t.Errorf("got %v", err)
	}
	wg.Wait()
}

// A rank whose settings are not those of rank 0 is told so, and that another attempt will not help.
func TestSettingsThatDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		opts []Option // of rank 1
		want string
	}{
		"token":                        {[]Option{WithToken("another secret that nobody knows"), WithTLS()}, "refused our token"},
		"TLS, on one machine":          {[]Option{WithToken(longToken)}, " has TLS: true, and this rank has TLS: false"},
		"TLS, from machine to machine": {[]Option{WithToken(longToken), option(notNear)}, "refused: its end of this connection has TLS: true"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			way := WithInitMethod("tcp://" + testkit.ReservedAddr(t))
			var zero sync.WaitGroup
			zero.Go(func() {
				opts := []Option{way, WithRank(0, 2), WithTimeout(20 * time.Second), WithToken(longToken), WithTLS()}
				if name == "TLS, from machine to machine" {
					opts = append(opts, option(notNear))
				}
				if g, err := Init(ctx, opts...); err == nil {
					_ = g.Close()
				}
			})
			_, err := Init(t.Context(), append(c.opts, way, WithRank(1, 2), WithTimeout(20*time.Second))...)
			if ExitCode(err) != 2 || !strings.HasPrefix(err.Error(), "comm: Init: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, exit code %d, want %q", err, ExitCode(err), c.want)
			}
			cancel()
			zero.Wait()
		})
	}
}

func TestPlacesThatMakeNoSense(t *testing.T) {
	for name, c := range map[string]struct {
		opts []Option
		want string
	}{
		"rank out of range": {[]Option{WithInitMethod("tcp://127.0.0.1:1"), WithRank(4, 4)}, "RANK=4"},
		"negative rank":     {[]Option{WithStore(NewMemStore()), WithRank(-1, 4)}, "RANK=-1"},
		"empty world":       {[]Option{WithStore(NewMemStore()), WithRank(0, 0)}, "WORLD_SIZE=0"},
		"no place":          {nil, "RANK is not set"},
		"no rank":           {[]Option{WithInitMethod("tcp://127.0.0.1:1")}, "RANK is not set"},
		"unknown method":    {[]Option{WithInitMethod("udp://127.0.0.1:1"), WithRank(0, 2)}, `init method "udp://127.0.0.1:1": want env://, tcp://host:port or file:///path`},
		"no port":           {[]Option{WithInitMethod("tcp://127.0.0.1"), WithRank(0, 2)}, `want env://, tcp://host:port or file:///path`},
		"relative file":     {[]Option{WithInitMethod("file://meet"), WithRank(0, 2)}, `want env://, tcp://host:port or file:///path`},
		"bad port":          {[]Option{WithInitMethod("tcp://127.0.0.1:banana"), WithRank(0, 2)}, `tcp://127.0.0.1:banana`},
		"unknown transport": {[]Option{WithTransport("pigeon")}, `transport "pigeon": want auto, shm or tcp`},
		"no connections":    {[]Option{WithConnections(0)}, `"0" connections: want auto or 1 to 16`},
		"many connections":  {[]Option{WithConnections(17)}, `"17" connections: want auto or 1 to 16`},
		"no timeout":        {[]Option{WithTimeout(0)}, "timeout 0s: want a positive duration"},
		"no token":          {[]Option{WithInitMethod("tcp://192.0.2.1:29500"), WithRank(1, 2)}, "192.0.2.1:29500 can be reached from the network and there is no token"},
		"no directory":      {[]Option{WithInitMethod("file:///no/such/directory/meet"), WithRank(0, 2)}, "/no/such/directory/meet"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GORUN_TOKEN"} {
				t.Setenv(v, "")
				os.Unsetenv(v)
			}
			g, err := Init(t.Context(), c.opts...)
			if err == nil || !strings.HasPrefix(err.Error(), "comm: Init: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want %q", g, err, c.want)
			}
			if known := name != "no directory"; ExitCode(err) != map[bool]int{true: 2, false: 1}[known] {
				t.Errorf("exit code %d", ExitCode(err))
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		})
	}
}

func TestInitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := Init(ctx, WithStore(NewMemStore()), WithRank(0, 2))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAWorldOfOneFromTheEnvironment(t *testing.T) {
	for k, v := range map[string]string{"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "GORUN_STORE_ADDR": ""} {
		t.Setenv(k, v)
	}
	g, err := Init(t.Context())
	wantWorld(t, []*Group{g}, []error{err})
}

func TestAWorldFromTheEnvironment(t *testing.T) {
	host, port, _ := strings.Cut(testkit.ReservedAddr(t), ":")
	for k, v := range map[string]string{"WORLD_SIZE": "2", "MASTER_ADDR": host, "MASTER_PORT": port, "GORUN_STORE_ADDR": ""} {
		t.Setenv(k, v)
	}
	groups, errs := initAll(t, upTo(2), 2, WithTimeout(20*time.Second)) // ranks from options, the rest from the environment
	wantWorld(t, groups, errs)
}

func TestAStoreThatTheAgentServes(t *testing.T) {
	server, err := ListenStore("127.0.0.1:0", []byte("secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for k, v := range map[string]string{
		"WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1",
		"GORUN_STORE_ADDR": server.Addr(), "GORUN_TOKEN": "secret", "GORUN_ROUND": "4",
	} {
		t.Setenv(k, v)
	}
	groups, errs := initAll(t, upTo(3), 3, WithTimeout(20*time.Second))
	wantWorld(t, groups, errs)
}
