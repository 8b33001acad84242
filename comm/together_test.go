package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/bootstrap"
)

// mapped is how many pieces of memory this process has mapped: of teams, or, called gorun-stream, of streams.
func mapped(t testing.TB, name string) int {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), "memfd:"+name+" ")
}

// Groups share memory from their first collective until they are closed, or their world is.
func TestGroupsGiveMemoryBack(t *testing.T) {
	w := worldOver(t, "shm", 4)
	check := func(when string, want int) {
		t.Helper()
		if got := mapped(t, "gorun"); got != want {
			t.Errorf("%s: %d pieces of memory are mapped, want %d", when, got, want)
		}
	}
	check("at first", 0)
	w.run(func(ctx context.Context, g *Group) error { return Barrier(ctx, g) })
	check("with a team", 4)
	w.run(func(ctx context.Context, g *Group) error {
		for i := range 20 {
			part, err := Split(ctx, g, g.Rank()%2, 0)
			if err != nil {
				return err
			}
			sum := []int{g.Rank()}
			if err := AllReduce(ctx, part, sum, Sum); err != nil || sum[0] != 2+2*(g.Rank()%2) {
				return fmt.Errorf("got %v, %w", sum, err)
			}
			if i == 19 { // left open
				return nil
			}
			if err := part.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	check("with a group each", 8)
	w.close()
	check("in the end", 0)
	if n := mapped(t, "gorun-stream"); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

// Where a rank cannot have the memory all do without, and who has another on its machine says so once.
func TestWithoutSharedMemory(t *testing.T) {
	for _, c := range []struct {
		placement string
		must      bool
		says      []int // how often, by rank
	}{{"shm", false, []int{1, 1, 1}}, {"shm", true, nil}, {"mixed", false, []int{1, 0, 1}}} {
		must := c.must
		w := worldOver(t, c.placement, 3)
		logs := make([]bytes.Buffer, 3) // each of one rank
		for r, g := range w.groups {
			g.world.OnFallback, g.world.MustShare = bootstrap.OnFallback(slog.New(slog.NewTextHandler(&logs[r], nil)), must), must
			if r == 2 {
				g.world.Token = []byte("another one's")
			}
		}
		errs := w.results(func(ctx context.Context, g *Group) error {
			for range 3 {
				sum := []int{g.Rank()}
				if err := AllReduce(ctx, g, sum, Sum); err != nil || sum[0] != 3 {
					return errors.Join(err, fmt.Errorf("got %v", sum))
				}
			}
			part, err := NewGroup(ctx, g, []int{2, 1, 0})
			if err != nil {
				return err
			}
			return Barrier(ctx, part)
		})
		for r, err := range errs {
			if must != (err != nil && strings.Contains(err.Error(), "no shared memory")) {
				t.Errorf("rank %d, to rely on it: %t: %v", r, must, err)
			}
			if n := strings.Count(logs[r].String(), "no shared memory"); !must && n != c.says[r] {
				t.Errorf("rank %d says %d times that there is no shared memory:\n%s", r, n, logs[r].String())
			}
		}
		w.close()
	}
}

// TestLeavesWhileMemoryIsShared: if a rank leaves while the others attach memory, that is what they say, and not that
// there is no memory.
func TestLeavesWhileMemoryIsShared(t *testing.T) {
	for i := range 24 {
		must := i%2 == 0
		w := worldOver(t, "shm", 3)
		logs := make([]bytes.Buffer, len(w.groups)) // each of one rank
		for r, g := range w.groups {
			g.world.OnFallback, g.world.MustShare = bootstrap.OnFallback(slog.New(slog.NewTextHandler(&logs[r], nil)), must), must
		}
		errs := w.results(func(ctx context.Context, g *Group) error {
			if g.Rank() == 0 {
				time.AfterFunc(time.Duration(60+10*i)*time.Microsecond, func() { _ = g.Close() })
			}
			return Barrier(ctx, g)
		})
		for r := range errs {
			if text := fmt.Sprint(errs[r], logs[r].String()); strings.Contains(text, "no shared memory") {
				t.Fatalf("%d: rank %d of %d: %v, and logs:\n%s", i, r, len(errs), errs[r], logs[r].String())
			}
		}
		w.close()
	}
}
