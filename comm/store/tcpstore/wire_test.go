package comm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/alloctest"
)

// wire returns the bytes of a frame, as they are sent.
func wire(frame [][]byte) []byte { return bytes.Join(frame, nil) }

// storeRequests draws every kind of request, with those fields set that count for it.
var storeRequests = rapid.Custom(func(t *rapid.T) storeRequest {
	r := storeRequest{
		kind: storeKind(rapid.IntRange(int(storeSet), int(storeForget)).Draw(t, "kind")),
		id:   rapid.Uint64().Draw(t, "id"),
	}
	value := rapid.SliceOf(rapid.Byte())
	if r.kind != storeForget {
		r.key = string(rapid.SliceOfN(rapid.Byte(), 1, MaxStoreKey).Draw(t, "key"))
	}
	switch r.kind {
	case storeSet:
		r.value = value.Draw(t, "value")
	case storeSwap:
		r.old, r.value = value.Draw(t, "old"), value.Draw(t, "new")
	case storeAdd:
		r.n = rapid.Int64().Draw(t, "n")
	default:
	}
	return r
})

func TestStoreRequestsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.SliceOfN(storeRequests, 1, 5).Draw(t, "requests")
		var stream bytes.Buffer
		for _, r := range sent {
			stream.Write(wire(r.frame()))
		}
		for _, want := range sent {
			body, err := readStoreFrame(&stream)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parseStoreRequest(body)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("parsed %+v, %v; want %+v", got, err, want)
			}
		}
		if _, err := readStoreFrame(&stream); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last frame: %v", err)
		}
	})
}

func TestTruncatedStoreFramesAreErrors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := wire(storeRequests.Draw(t, "request").frame())
		cut := rapid.IntRange(0, len(whole)-1).Draw(t, "cut")
		if _, err := readStoreFrame(bytes.NewReader(whole[:cut])); err == nil {
			t.Fatalf("%d of %d bytes were taken for a frame", cut, len(whole))
		}
	})
}

func TestStoreRepliesSurviveTheWire(t *testing.T) {
	for _, want := range []storeReply{
		{kind: storeDone, id: 1, payload: []byte("value")},
		{kind: storeDone, id: 1<<64 - 1, payload: []byte{}},
		{kind: storeFailed, id: 7, payload: []byte("no")},
	} {
		body, err := readStoreFrame(bytes.NewReader(wire(want.frame())))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseStoreReply(body); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parsed %+v, %v; want %+v", got, err, want)
		}
	}
	if _, err := parseStoreReply([]byte{byte(storeGet), 0, 0, 0, 0, 0, 0, 0, 1}); err == nil {
		t.Error("a request was taken for a reply")
	}
}

func TestMalformedStoreRequests(t *testing.T) {
	header := func(kind storeKind, rest string) []byte {
		return append(binary.BigEndian.AppendUint64([]byte{byte(kind)}, 1), rest...)
	}
	for name, body := range map[string][]byte{
		"nothing":                {},
		"no id":                  {byte(storeGet), 0, 0},
		"unknown kind":           header(200, "\x00\x01k"),
		"kind zero":              header(0, "\x00\x01k"),
		"a reply":                header(storeDone, "\x00\x01k"),
		"key longer than frame":  header(storeGet, "\x00\x05k"),
		"empty key":              header(storeGet, "\x00\x00"),
		"key over the limit":     header(storeGet, "\x04\x01"+strings.Repeat("k", MaxStoreKey+1)),
		"bytes after a key":      header(storeGet, "\x00\x01kX"),
		"bytes after a number":   header(storeAdd, "\x00\x01k12345678X"),
		"half a number":          header(storeAdd, "\x00\x01k1234"),
		"old longer than frame":  header(storeSwap, "\x00\x01k\xff\xff\xff\xffold"),
		"forget with more":       header(storeForget, "X"),
		"value over the limit":   header(storeSet, "\x00\x01k"+strings.Repeat("v", MaxStoreValue+1)),
		"old over the limit":     header(storeSwap, "\x00\x01k\x01\x00\x00\x01"+strings.Repeat("v", MaxStoreValue+1)),
		"new over the limit":     header(storeSwap, "\x00\x01k\x00\x00\x00\x00"+strings.Repeat("v", MaxStoreValue+1)),
		"delete with a value":    header(storeDelete, "\x00\x01kv"),
		"wait without a key":     header(storeWait, ""),
		"length without the key": header(storeSet, "\x00\x01"),
	} {
		if r, err := parseStoreRequest(body); !errors.Is(err, errStoreFrame) {
			t.Errorf("%s: parsed %v, %v; want errStoreFrame", name, r, err)
		}
	}
}

// greedy remembers the most that was asked of it at once.
type greedy struct {
	in   io.Reader
	most int
}

func (g *greedy) Read(b []byte) (int, error) {
	g.most = max(g.most, len(b))
	return g.in.Read(b)
}

func TestStoreFrameLengthsAreNotBelieved(t *testing.T) {
	claim := func(n uint32) *greedy {
		return &greedy{in: bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, n), "short"...))}
	}
	for _, n := range []uint32{0, 8, storeMaxFrame - 3, 1 << 31, 1<<32 - 1} {
		r := claim(n)
		if _, err := readStoreFrame(r); !errors.Is(err, errStoreFrame) || r.most > 4 {
			t.Errorf("a frame of %d bytes: %v, after room was made for %d bytes", n, err, r.most)
		}
	}
	r := claim(storeMaxFrame - 4)
	if _, err := readStoreFrame(r); !errors.Is(err, io.ErrUnexpectedEOF) || r.most > 1<<20 {
		t.Errorf("a big frame that does not come: %v, after room was made for %d bytes", err, r.most)
	}
}

func FuzzStoreRequest(f *testing.F) {
	for kind := storeSet; kind <= storeForget; kind++ {
		f.Add(wire(storeRequest{kind: kind, id: 9, key: "key", n: -1, old: []byte("old"), value: []byte("new")}.frame())[4:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		alloctest.AtMost(t, 2*len(body), func() { _, _ = parseStoreRequest(body) })
		r, err := parseStoreRequest(body)
		if err != nil {
			return
		}
		if again := wire(r.frame())[4:]; !bytes.Equal(again, body) {
			t.Errorf("%x was parsed as %+v, which is written as %x", body, r, again)
		}
	})
}

func FuzzStoreReply(f *testing.F) {
	f.Add([]byte{byte(storeDone), 0, 0, 0, 0, 0, 0, 0, 9, 'v'})
	f.Add([]byte{byte(storeSet), 0, 0, 0, 0, 0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, body []byte) {
		alloctest.AtMost(t, 0, func() { _, _ = parseStoreReply(body) })
		r, err := parseStoreReply(body)
		if err == nil && (r.kind != storeDone && r.kind != storeFailed || len(body) != 9+len(r.payload)) {
			t.Errorf("%x was parsed as %+v", body, r)
		}
	})
}

func FuzzStoreFrame(f *testing.F) {
	f.Add(wire(storeRequest{kind: storeSet, id: 9, key: "key", value: []byte("new")}.frame()))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, stream []byte) {
		alloctest.AtMost(t, 4*len(stream)+128<<10, func() {
			body, err := readStoreFrame(bytes.NewReader(stream))
			if err == nil && !bytes.HasPrefix(stream[4:], body) {
				t.Errorf("%x begins with the frame %x", stream, body)
			}
		})
	})
}

func TestAClientThatLeavesIsForgotten(t *testing.T) {
	state := newStoreState()
	mine, theirs := net.Pipe()
	defer mine.Close()
	defer theirs.Close()
	client := func() *storeClient {
		return &storeClient{conn: mine, out: newStoreOutbox(), waits: map[uint64]*storeWaiter{}}
	}
	leaver, stayer := client(), client()
	for _, c := range []*storeClient{leaver, stayer} {
		c.handle(&state, storeRequest{kind: storeGet, id: 1, key: "a"})
		c.handle(&state, storeRequest{kind: storeWait, id: 2, key: "b"})
	}
	leaver.leave(&state)
	if len(state.waiters["a"]) != 1 || len(state.waiters["b"]) != 1 {
		t.Errorf("after one of two clients left, the waiters are %v", state.waiters)
	}
	stayer.handle(&state, storeRequest{kind: storeForget, id: 1})
	stayer.handle(&state, storeRequest{kind: storeSet, id: 3, key: "b"})
	if len(state.waiters) != 0 || len(stayer.waits) != 0 {
		t.Errorf("nobody waits for anything, but there are waiters %v and waits %v", state.waiters, stayer.waits)
	}
	for range 2 {
		stayer.handle(&state, storeRequest{kind: storeGet, id: 4, key: "a"})
	}
	if why := stayer.kicked.Load(); why == nil || !errors.Is(*why, errStoreTwice) {
		t.Error("a client that gave two waits one id was not hung up on")
	}
}
