package comm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/comm/internal/transport/tcp"
	"github.com/gorun/gorun/comm/internal/worker"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) {
	_ = process.SaveFlightsIn(os.DevNull) // tests that fail groups on purpose leave no files
	if program := os.Getenv(asWorker); program != "" {
		os.Exit(runWorker(program))
	}
	if network := os.Getenv(asSurvivor); network != "" {
		os.Exit(runSurvivor(network))
	}
	if store := os.Getenv(asReader); store != "" {
		os.Exit(runReader(store))
	}
	if testkit.Race {
		debug.SetGCPercent(400) // collections are slow under the race detector
		debug.SetMemoryLimit(1 << 30)
	}
	goleak.VerifyTestMain(testkit.OwnSettings(m))
}

var testToken = []byte("a secret of 16 bytes and more")

// transports are what the conformance tests run on.
var transports = map[string]func(t testing.TB, size int) []transport.Transport{
	"mem": func(_ testing.TB, size int) []transport.Transport {
		network := transporttest.NewNetwork(size)
		trs := make([]transport.Transport, size)
		for r := range trs {
			trs[r] = network.Transport(r)
		}
		return trs
	},
	"tcp": func(t testing.TB, size int) []transport.Transport {
		return overTCP(t, size, tcp.Config{Token: testToken})
	},
	"bundles": func(t testing.TB, size int) []transport.Transport {
		return overTCP(t, size, tcp.Config{Token: testToken, Connections: 3})
	},
	"tls": func(t testing.TB, size int) []transport.Transport {
		identity, err := auth.NewIdentity(testToken, "workers")
		if err != nil {
			t.Fatal(err)
		}
		return overTCP(t, size, tcp.Config{Token: testToken, TLS: identity, Near: func(net.Conn) bool { return false }})
	},
}

func overTCP(t testing.TB, size int, cfg tcp.Config) []transport.Transport {
	lns := make([]net.Listener, size)
	cfg.World, cfg.Peers = 1, make([]string, size)
	for r := range lns {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		lns[r], cfg.Peers[r] = ln, ln.Addr().String()
	}
	trs := make([]transport.Transport, size)
	for r := range trs {
		cfg.Rank = r
		trs[r] = tcp.New(lns[r], cfg)
	}
	return trs
}

// onEveryTransport runs test as a subtest of mem, tcp, shm, and shm on two machines; tls is tcp with a wrapper, for the
// tests of that.
func onEveryTransport(t *testing.T, test func(t *testing.T, world func(size int) *testWorld)) {
	onTransports(t, []string{"mem", "tcp", "shm", "mixed"}, test)
}

func onTransports(t *testing.T, names []string, test func(t *testing.T, world func(size int) *testWorld)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			test(t, func(size int) *testWorld { return worldOver(t, name, size) })
		})
	}
}

// A testWorld is a world whose ranks are goroutines of the test.
type testWorld struct {
	t      testing.TB
	groups []*Group
	mortal []*transporttest.MortalTransport
	shared bool // ranks share memory
	odd    bool // one of them may have called something else, which others may hear of only when they close
}

func newTestWorld(t testing.TB, trs []transport.Transport) *testWorld {
	return newSharingWorld(t, trs, nil)
}

// memberOf is the group of ranks that have met, for rank r.
func memberOf(r int, peers []core.Peer, tr transport.Transport, log io.Writer) (*Group, error) {
	met := metWorld(r, peers, slog.New(slog.NewTextHandler(log, nil)))
	met.Transport = tr
	return newWorld(testConfig(), met)
}

func newWorld(cfg config, met *bootstrap.World) (*Group, error) {
	w, err := process.Open(&cfg, met)
	if err != nil {
		return nil, err
	}
	return newGroup(w, w.All, w.Objects), nil
}

// metWorld is what rank r knows of ranks that have met, but for how it reaches them.
func metWorld(r int, peers []core.Peer, log *slog.Logger) *bootstrap.World {
	return &bootstrap.World{WorldConfig: core.WorldConfig{Rank: r, Peers: peers, Log: log}, ID: 1, Leave: func() {}}
}

// testConfig has a timeout of a minute, and no other settings.
func testConfig() (c config) {
	c.Timeout = time.Minute
	return c
}

// newSharingWorld makes a world whose ranks are on the given machines, and share memory there, or on none.
func newSharingWorld(t testing.TB, trs []transport.Transport, machines []string) *testWorld {
	return newConfiguredWorld(t, testConfig(), trs, machines)
}

// Each configure is called with what a rank knows when ranks have met.
func newConfiguredWorld(t testing.TB, cfg config, trs []transport.Transport, machines []string, configure ...func(*bootstrap.World)) *testWorld {
	testkit.Once(t)
	w := &testWorld{t: t, shared: len(machines) > 0}
	peers, acceptors := make([]core.Peer, len(trs)), make([]*acceptor.Acceptor, len(trs))
	for r := range peers {
		peers[r] = core.Peer{Host: "here", PID: os.Getpid(), Place: machine.Place{Kernel: "here", Network: "here", Processes: "here"}}
		if len(machines) == 0 {
			continue
		}
		var err error
		if acceptors[r], err = acceptor.Listen(testToken, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		peers[r].Acceptor, peers[r].Network = acceptors[r].Address(), machines[r]
	}
	for r, tr := range trs {
		log := slog.New(slog.DiscardHandler)
		met := metWorld(r, peers, log)
		met.Acceptor, met.Token, met.OnFallback = acceptors[r], testToken, bootstrap.OnFallback(log, false)
		for _, f := range configure {
			f(met)
		}
		m := transporttest.Mortal(bootstrap.Nearby(&met.WorldConfig, met.ID, tr))
		met.Transport = m
		g, err := newWorld(cfg, met)
		if err != nil {
			t.Fatal(err)
		}
		w.groups, w.mortal = append(w.groups, g), append(w.mortal, m)
	}
	return w
}

// run runs program on every rank and reports what goes wrong.
func (w *testWorld) run(program func(ctx context.Context, g *Group) error) {
	w.t.Helper()
	for r, err := range w.results(program) {
		if err != nil {
			w.t.Errorf("size %d, rank %d: %v", len(w.groups), r, err)
		}
	}
}

// results runs program on every rank and returns the error of each.
func (w *testWorld) results(program func(ctx context.Context, g *Group) error) []error {
	errs := make([]error, len(w.groups))
	var wg sync.WaitGroup
	for r, g := range w.groups {
		wg.Go(func() { errs[r] = program(w.t.Context(), g) })
	}
	wg.Wait()
	return errs
}

func (w *testWorld) close() {
	var wg sync.WaitGroup
	for r, g := range w.groups {
		wg.Go(func() {
			err := g.Close()
			_, differs := errors.AsType[*MismatchError](err)
			_, gaveUp := errors.AsType[*worker.AbandonedError](err) // after an error of another group
			if err != nil && (!w.odd || !differs && !gaveUp) {
				w.t.Errorf("rank %d: close: %v", r, err)
			}
		})
	}
	wg.Wait()
}

// paths are the worlds of which each takes another path below the API: messages through memory of the process and over
// sockets, shared memory, and both. Packages core, hier and pipeline test what algorithms and numbers of ranks change.
var paths = map[string][]int{"mem": {1, 3, 5}, "tcp": {2}, "shm": {1, 3}, "mixed": {4}}

// onEveryPath runs program in a world of each size of paths.
func onEveryPath(t *testing.T, program func(ctx context.Context, g *Group) error) {
	testkit.WithoutRace(t)
	for transport, sizes := range paths {
		for _, size := range sizes {
			t.Run(fmt.Sprint(transport, size), func(t *testing.T) {
				w := worldOver(t, transport, size)
				w.run(program)
				w.close()
			})
		}
	}
}

// inWorldOf runs program on every rank of a world of size, on every transport.
func inWorldOf(t *testing.T, size int, program func(ctx context.Context, g *Group) error) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(size)
		defer w.close()
		w.run(program)
	})
}
