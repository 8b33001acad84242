package embedded

import (
	"bytes"
	"io"
	"testing"

	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/gorun/gorun/env/alloctest"
)

// FuzzAnswer: what another server says takes no more memory than it is long.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"cluster":"c","server":"s","founds":true}`))
	f.Add([]byte(`[{"id":1,"peerURLs":["http://a:1"],"name":"n"},null,{}]`))
	f.Add(bytes.Repeat([]byte("[{},"), 100))
	f.Fuzz(func(t *testing.T, text []byte) {
		alloctest.AtMost(t, 512*len(text), func() {
			var is founding
			_ = readAnswer(bytes.NewReader(text), &is)
			var members []*membership.Member
			_ = readAnswer(bytes.NewReader(text), &members)
		})
	})
}

// TestAnswerWithoutEnd is read up to its limit.
func TestAnswerWithoutEnd(t *testing.T) {
	endless := io.MultiReader(bytes.NewReader([]byte(`"`)), repeat('x'))
	alloctest.AtMost(t, 16*maxSurvey, func() {
		if err := readAnswer(endless, new(founding)); err == nil {
			t.Error("an answer without end is read")
		}
	})
}

// repeat reads as one byte again and again.
type repeat byte

func (r repeat) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r)
	}
	return len(b), nil
}
