package tcp

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/testing/testkit"
)

// bundled makes transports whose streams have so many connections, with stripes of so many bytes.
func bundled(t *testing.T, size, connections, stripe int, tweak func(rank int, cfg *Config)) []transport.Transport {
	trs := world(t, size, func(rank int, cfg *Config) {
		cfg.Connections = connections
		if tweak != nil {
			tweak(rank, cfg)
		}
	})
	for _, tr := range trs {
		tr.(*Transport).stripe = stripe
	}
	return trs
}

func TestConformanceOfBundles(t *testing.T) {
	for name, tweak := range map[string]func(int, *Config){"plain": nil, "TLS": far(t)} {
		t.Run(name, func(t *testing.T) {
			for _, connections := range []int{2, 5, MostConnections} {
				transporttest.Run(t, func(t *testing.T, size int) []transport.Transport {
					return bundled(t, size, connections, 1000, tweak)
				})
			}
		})
	}
}

// parts are the connections of a bundle.
func parts(c net.Conn) (conns []*net.TCPConn) {
	if b, is := c.(interface {
		all(func(*net.TCPConn) error) error
	}); is {
		_ = b.all(func(c *net.TCPConn) error { conns = append(conns, c); return nil })
	}
	return conns
}

// connected is both ends of a stream.
func connected(t testing.TB, trs []transport.Transport) (a, b net.Conn) {
	got := make(streams, 1)
	trs[1].Serve(got)
	a, err := trs[0].Dial(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return a, <-got
}

// However bytes are cut when they are written and read, they are the same.
func TestStripesAreInvisible(t *testing.T) {
	for _, connections := range []int{1, 2, 3} {
		for _, stripe := range []int{1, 10, 64 << 10} {
			trs := bundled(t, 2, connections, stripe, nil)
			a, b := connected(t, trs)
			rapid.Check(t, func(t *rapid.T) {
				cuts := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 20)
				sent := rapid.SliceOfN(rapid.Byte(), 0, 500).Draw(t, "sent")
				done := make(chan error, 1)
				go func(writes []int) {
					rest := sent
					for i := 0; len(rest) > 0; i++ {
						n := min(len(rest), 1+writes[i%len(writes)])
						if _, err := a.Write(rest[:n]); err != nil {
							done <- err
							return
						}
						rest = rest[n:]
					}
					done <- nil
				}(cuts.Draw(t, "writes"))
				reads, got := cuts.Draw(t, "reads"), []byte{}
				for i := 0; len(got) < len(sent); i++ {
					part := make([]byte, min(1+reads[i%len(reads)], len(sent)-len(got)))
					n, err := b.Read(part)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, part[:n]...)
				}
				if err := <-done; err != nil || !bytes.Equal(got, sent) {
					t.Fatalf("%v, or other bytes than were sent", err)
				}
			})
			_, _ = a.Close(), b.Close()
			closeAll(t, trs)
		}
	}
}

func TestALostConnectionIsTheLossOfTheStream(t *testing.T) {
	trs := bundled(t, 2, 3, 10, nil)
	defer closeAll(t, trs)
	a, b := connected(t, trs)
	defer a.Close()
	defer b.Close()
	_ = parts(a)[1].Close()
	go func() { _, _ = a.Write(make([]byte, 35)) }()
	if got, err := io.ReadAll(b); len(got) != 10 || err != nil {
		t.Errorf("got %d bytes, %v, want the first stripe", len(got), err)
	}
}

// Of who opens a part of a stream only, nothing is left.
func TestAPartOfABundle(t *testing.T) {
	trs := bundled(t, 2, 3, stripe, nil)
	got := make(streams, 1)
	trs[1].Serve(got)
	caller := trs[0].(*Transport)
	first := caller.hello(1)
	first.count = 3
	conn, err := caller.call(t.Context(), &first, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	refused := func(change func(h *hello)) {
		t.Helper()
		h := first
		h.index = 1
		change(&h)
		if c, err := caller.call(t.Context(), &h, time.Now().Add(time.Minute)); err == nil {
			_ = c.Close()
			t.Errorf("%+v was taken in", h)
		}
	}
	refused(func(h *hello) { h.stream++ })
	refused(func(h *hello) { h.count++ })
	refused(func(h *hello) { h.index = h.count })
	refused(func(h *hello) { h.count = MostConnections + 1 })
	second := first
	second.index = 1
	other, err := caller.call(t.Context(), &second, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := trs[1].Close(); err != nil { // as if the time for a handshake had passed
		t.Error(err)
	}
	if conn := <-got; conn != nil {
		t.Error("a part was handed over")
	}
	for _, c := range []net.Conn{conn, other} {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a part stays open")
		}
	}
	if n := len(trs[1].(*Transport).pending.byRank); n > 0 {
		t.Errorf("%d are awaited for ever", n)
	}
	_ = trs[0].Close()
}

// A rank that calls again, because its first stream broke before it was whole, is not harmed when that one's time is
// up.
func TestTheEndOfAnEarlierBundle(t *testing.T) {
	var g pendingBundles
	first := hello{Hello: transport.Hello{From: 1}, stream: 7, count: 2}
	second := first
	second.stream++
	earlier := g.begin(first)
	later := g.begin(second)
	g.end(1, earlier)
	second.index = 1
	if err := g.add(second, &net.TCPConn{}); err != nil || later.missing != 0 {
		t.Errorf("the later stream lacks %d connections: %v", later.missing, err)
	}
	g.end(1, later)
	if err := g.add(second, nil); err == nil || len(g.byRank) > 0 {
		t.Errorf("%d streams are still pending", len(g.byRank))
	}
}

func FuzzHello(f *testing.F) {
	tr := &Transport{cfg: Config{World: 7, Rank: 1, Peers: make([]string, 3)}}
	good := (&Transport{cfg: Config{World: 7, Rank: 2}}).hello(1)
	good.count = 4
	f.Add(good.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		testkit.AllocatesAtMost(t, 0, func() { _, _ = tr.checkHello(b) })
		h, err := tr.checkHello(b)
		if err == nil && (!bytes.Equal(h.bytes(), b) || h.From > 2 || h.From == 1 || h.index >= h.count || h.count > MostConnections) {
			t.Errorf("%+v", h)
		}
	})
}

func TestConnectionsOfAWay(t *testing.T) {
	const gigabit, window = 1e9 / 8, 4 << 20
	for _, c := range []struct {
		link link
		want int
	}{
		{link{}, 1},
		{link{1 * gigabit, 1, 100 * time.Microsecond, window}, 1},
		{link{10 * gigabit, 1, 100 * time.Microsecond, window}, 1},
		{link{25 * gigabit, 1, 100 * time.Microsecond, window}, 3},
		{link{40 * gigabit, 1, 100 * time.Microsecond, window}, 4},
		{link{100 * gigabit, 1, 100 * time.Microsecond, window}, 8},
		{link{1 * gigabit, 1, 10 * time.Millisecond, window}, 1},
		{link{1 * gigabit, 1, 50 * time.Millisecond, window}, 3},
		{link{10 * gigabit, 1, 2 * time.Millisecond, window}, 2},
		{link{10 * gigabit, 1, 5 * time.Millisecond, window}, 3},
		{link{10 * gigabit, 1, 10 * time.Millisecond, window}, 6},
		{link{10 * gigabit, 1, 100 * time.Millisecond, window}, 8},
		{link{0, 1, 10 * time.Millisecond, window}, 6},
		{link{10 * gigabit, 1, 10 * time.Millisecond, 16 * window}, 1},
		{link{10 * gigabit, 1, 10 * time.Millisecond, 0}, 1},
		{link{100 * gigabit, 2, 100 * time.Microsecond, window}, 5},
		{link{100 * gigabit, 8, 100 * time.Microsecond, window}, 2},
		{link{100 * gigabit, 16, 100 * time.Microsecond, window}, 1},
		{link{10 * gigabit, 2, 10 * time.Millisecond, window}, 3},
		{link{1e300, 1, time.Hour, 1}, 8},
	} {
		if got := c.link.connections(); got != c.want {
			t.Errorf("%+v: %d connections, want %d", c.link, got, c.want)
		}
	}
}

func TestOnOneMachineAStreamHasOneConnection(t *testing.T) {
	trs := world(t, 2, nil)
	defer closeAll(t, trs)
	a, b := connected(t, trs)
	if n := len(parts(a)); n != 1 {
		t.Errorf("a stream on loopback has %d connections", n)
	}
	_, _ = a.Close(), b.Close()
}
