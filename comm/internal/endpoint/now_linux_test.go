package endpoint

import (
	"bytes"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/transport/near"
	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/env/testing/testkit"
)

// manyRanks is so many that the rings between two of them are as short as rings get, and fill up.
const manyRanks = 40

// nearby returns the communicators of two ranks whose streams are memory.
func nearby(t *testing.T) [2]*Communicator {
	network, token := transporttest.NewNetwork(manyRanks), []byte("a secret of 16 bytes and more")
	var acceptors [2]*acceptor.Acceptor
	var addresses []string
	for r := range acceptors {
		a, err := acceptor.Listen(token, slog.New(slog.DiscardHandler))
		if err != nil {
			testkit.Cannot(t, "%v", err)
		}
		acceptors[r], addresses = a, append(addresses, a.Address())
	}
	for len(addresses) < manyRanks {
		addresses = append(addresses, "@nobody")
	}
	var comms [2]*Communicator
	var ends [2]*Endpoint
	for r := range comms {
		tr := near.New(acceptors[r], network.Transport(r), near.Config{World: 7, Rank: r, Peers: addresses, Token: token})
		e := New(tr, r, manyRanks, Options{ConnectTimeout: minute})
		c, err := e.Open(1, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		ends[r], comms[r] = e, c
	}
	t.Cleanup(func() {
		var all sync.WaitGroup
		for r, e := range ends {
			all.Go(func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				_ = acceptors[r].Close()
			})
		}
		all.Wait()
	})
	return comms
}

// TestShortCutsKeepTheOrderOfMessages: short messages that take the short cut, others that do not, and long ones, in
// any order and with two tags, arrive whole, and those of a tag in their order. The receiver keeps up, or begins when the
// sender has used up its credit. Messages look like frames.
func TestShortCutsKeepTheOrderOfMessages(t *testing.T) {
	testkit.WithoutRace(t)
	what := call.Call{Type: 5}
	like := func(n, i int) []byte {
		h := wire.Header{Kind: wire.Eager, Tag: int32(i % 2), Context: 1, ID: uint64(i), Fingerprint: call.Fingerprint{Call: what}}
		return bytes.Repeat(h.Append(nil), n/wire.HeaderSize)
	}
	for seed := range testkit.UnlessShort(uint64(200), 20) {
		comms := nearby(t)
		rng := rand.New(rand.NewPCG(seed, 0))
		var messages [2][][]byte // by tag
		var tags []int
		for i := range 600 {
			n, tag := []int{0, 64, 128, 320, 4096, nowLimit, 100 << 10}[rng.IntN(7)], rng.IntN(2)
			messages[tag], tags = append(messages[tag], like(n, i)), append(tags, tag)
		}
		begin := make(chan struct{})
		var both sync.WaitGroup
		both.Go(func() {
			var sent [2]int
			var ops []*Op
			for i, tag := range tags {
				if i == int(seed%2)*400 {
					close(begin)
				}
				b := messages[tag][sent[tag]]
				if sent[tag]++; len(b) > nowLimit || !comms[0].SendNow(1, tag, what.Pack(), b) {
					ops = append(ops, comms[0].Send(1, tag, 0, what, b))
				}
			}
			for _, op := range ops {
				if err := op.Wait(t.Context(), minute); err != nil {
					t.Errorf("seed %d: send: %v", seed, err)
					return
				}
			}
		})
		both.Go(func() {
			<-begin
			var got [2]int
			for range tags {
				tag := rng.IntN(2)
				if got[tag] == len(messages[tag]) {
					tag = 1 - tag
				}
				want := messages[tag][got[tag]]
				got[tag]++
				b := make([]byte, len(want))
				n, now := comms[1].RecvNow(0, tag, what.Pack(), b)
				var err error
				if !now {
					n, err = len(b), comms[1].Recv(0, tag, 0, what, b).Wait(t.Context(), minute)
				}
				if err != nil || n != len(want) || !bytes.Equal(b, want) {
					t.Errorf("seed %d: message %d with tag %d, taken now %t: got %d other bytes, want %d: %v", seed, got[tag], tag, now, n, len(want), err)
					comms[1].Fail(errors.New("a wrong message"))
					return
				}
			}
		})
		both.Wait()
	}
}

// TestShortCutsGiveCreditBack: more messages than a rank may send ahead take the short cut, if its peer keeps up.
func TestShortCutsGiveCreditBack(t *testing.T) {
	comms, what := nearby(t), call.Call{Type: 5}
	must(t, comms[0].Send(1, 0, 0, what, nil), comms[1].Recv(0, 0, 0, what, nil)) // connects
	long := 0
	for i := range 10_000 {
		b, got := []byte{byte(i)}, make([]byte, 1)
		var ops []*Op
		if !comms[0].SendNow(1, 0, what.Pack(), b) { // the ring is full as far as its writer knows
			ops = append(ops, comms[0].Send(1, 0, 0, what, b))
		}
		if _, ok := comms[1].RecvNow(0, 0, what.Pack(), got); !ok {
			ops = append(ops, comms[1].Recv(0, 0, 0, what, got))
		}
		must(t, ops...)
		long += len(ops)
		if got[0] != b[0] {
			t.Fatalf("message %d: got %v, want %v", i, got, b)
		}
	}
	if long > 1000 {
		t.Errorf("%d of 20000 sends and receives have not taken the short cut", long)
	}
}
