package tcpstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/env/testing/testkit"
)

// wire returns the bytes of a frame, as they are sent.
func wire(frame [][]byte) []byte { return bytes.Join(frame, nil) }

// requests draws requests of all kinds, with the fields set that count for the kind.
var requests = rapid.Custom(func(t *rapid.T) request {
	r := request{
		kind: kind(rapid.IntRange(int(setKind), int(cancelKind)).Draw(t, "kind")),
		id:   rapid.Uint64().Draw(t, "id"),
	}
	value := rapid.SliceOf(rapid.Byte())
	if r.kind != cancelKind {
		r.key = string(rapid.SliceOfN(rapid.Byte(), 1, store.MaxKey).Draw(t, "key"))
	}
	switch r.kind {
	case setKind:
		r.value = value.Draw(t, "value")
	case swapKind:
		r.old, r.value = value.Draw(t, "old"), value.Draw(t, "new")
	case addKind:
		r.n = rapid.Int64().Draw(t, "n")
	default:
	}
	return r
})

func TestRequestsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.SliceOfN(requests, 1, 5).Draw(t, "requests")
		var stream bytes.Buffer
		for _, r := range sent {
			stream.Write(wire(r.frame()))
		}
		for _, want := range sent {
			body, err := readFrame(&stream)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parseRequest(body)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("parsed %+v, %v; want %+v", got, err, want)
			}
		}
		if _, err := readFrame(&stream); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last frame: %v", err)
		}
	})
}

func TestTruncatedFramesAreErrors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := wire(requests.Draw(t, "request").frame())
		cut := rapid.IntRange(0, len(whole)-1).Draw(t, "cut")
		if _, err := readFrame(bytes.NewReader(whole[:cut])); err == nil {
			t.Fatalf("%d of %d bytes were taken for a frame", cut, len(whole))
		}
	})
}

func TestRepliesSurviveTheWire(t *testing.T) {
	for _, want := range []reply{
		{kind: doneKind, id: 1, payload: []byte("value")},
		{kind: doneKind, id: 1<<64 - 1, payload: []byte{}},
		{kind: failedKind, id: 7, payload: []byte("no")},
	} {
		body, err := readFrame(bytes.NewReader(wire(want.frame())))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseReply(body); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parsed %+v, %v; want %+v", got, err, want)
		}
	}
	if _, err := parseReply([]byte{byte(getKind), 0, 0, 0, 0, 0, 0, 0, 1}); err == nil {
		t.Error("a request was taken for a reply")
	}
}

func TestMalformedRequests(t *testing.T) {
	header := func(kind kind, rest string) []byte {
		return append(binary.BigEndian.AppendUint64([]byte{byte(kind)}, 1), rest...)
	}
	for name, body := range map[string][]byte{
		"nothing":                {},
		"no id":                  {byte(getKind), 0, 0},
		"unknown kind":           header(200, "\x00\x01k"),
		"kind zero":              header(0, "\x00\x01k"),
		"a reply":                header(doneKind, "\x00\x01k"),
		"key longer than frame":  header(getKind, "\x00\x05k"),
		"empty key":              header(getKind, "\x00\x00"),
		"key over the limit":     header(getKind, "\x04\x01"+strings.Repeat("k", store.MaxKey+1)),
		"bytes after a key":      header(getKind, "\x00\x01kX"),
		"bytes after a number":   header(addKind, "\x00\x01k12345678X"),
		"half a number":          header(addKind, "\x00\x01k1234"),
		"old longer than frame":  header(swapKind, "\x00\x01k\xff\xff\xff\xffold"),
		"forget with more":       header(cancelKind, "X"),
		"value over the limit":   header(setKind, "\x00\x01k"+strings.Repeat("v", store.MaxValue+1)),
		"old over the limit":     header(swapKind, "\x00\x01k\x01\x00\x00\x01"+strings.Repeat("v", store.MaxValue+1)),
		"new over the limit":     header(swapKind, "\x00\x01k\x00\x00\x00\x00"+strings.Repeat("v", store.MaxValue+1)),
		"delete with a value":    header(deleteKind, "\x00\x01kv"),
		"wait without a key":     header(waitKind, ""),
		"length without the key": header(setKind, "\x00\x01"),
	} {
		if r, err := parseRequest(body); !errors.Is(err, errMalformed) {
			t.Errorf("%s: parsed %v, %v; want errMalformed", name, r, err)
		}
	}
}

// A greedy records the longest read.
type greedy struct {
	in   io.Reader
	most int
}

func (g *greedy) Read(b []byte) (int, error) {
	g.most = max(g.most, len(b))
	return g.in.Read(b)
}

func TestFrameLengthsAreNotBelieved(t *testing.T) {
	claim := func(n uint32) *greedy {
		return &greedy{in: bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, n), "short"...))}
	}
	for _, n := range []uint32{0, 8, maxFrame - 3, 1 << 31, 1<<32 - 1} {
		r := claim(n)
		if _, err := readFrame(r); !errors.Is(err, errMalformed) || r.most > 4 {
			t.Errorf("a frame of %d bytes: %v, after room was made for %d bytes", n, err, r.most)
		}
	}
	r := claim(maxFrame - 4)
	if _, err := readFrame(r); !errors.Is(err, io.ErrUnexpectedEOF) || r.most > 1<<20 {
		t.Errorf("a big frame that does not come: %v, after room was made for %d bytes", err, r.most)
	}
}

func FuzzRequest(f *testing.F) {
	for kind := setKind; kind <= cancelKind; kind++ {
		f.Add(wire(request{kind: kind, id: 9, key: "key", n: -1, old: []byte("old"), value: []byte("new")}.frame())[4:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		testkit.AllocatesAtMost(t, 2*len(body), func() { _, _ = parseRequest(body) })
		r, err := parseRequest(body)
		if err != nil {
			return
		}
		if again := wire(r.frame())[4:]; !bytes.Equal(again, body) {
			t.Errorf("%x was parsed as %+v, which is written as %x", body, r, again)
		}
	})
}

func FuzzReply(f *testing.F) {
	f.Add([]byte{byte(doneKind), 0, 0, 0, 0, 0, 0, 0, 9, 'v'})
	f.Add([]byte{byte(setKind), 0, 0, 0, 0, 0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, body []byte) {
		testkit.AllocatesAtMost(t, 0, func() { _, _ = parseReply(body) })
		r, err := parseReply(body)
		if err == nil && (r.kind != doneKind && r.kind != failedKind || len(body) != 9+len(r.payload)) {
			t.Errorf("%x was parsed as %+v", body, r)
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add(wire(request{kind: setKind, id: 9, key: "key", value: []byte("new")}.frame()))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, stream []byte) {
		testkit.AllocatesAtMost(t, 4*len(stream)+128<<10, func() {
			body, err := readFrame(bytes.NewReader(stream))
			if err == nil && !bytes.HasPrefix(stream[4:], body) {
				t.Errorf("%x begins with the frame %x", stream, body)
			}
		})
	})
}
