package liveness

import (
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// FuzzHello: what a caller says is kept within bounds.
func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"from":"a","to":"b","port":1,"stay":true}`))
	f.Add([]byte(`{"from":"a","to":"b"}`))
	f.Add([]byte(`{"port":-1}`))
	f.Add([]byte(`{"from":"0123456789012345678901234567890123456789012345678901234567890123456789"}`))
	f.Add([]byte(`[[[[[[[[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var h hello
		var err error
		testkit.AllocatesAtMost(t, 64*len(text), func() { h, err = parseHello(text) })
		if err == nil && (len(h.From) > maxKey || h.Port < 0 || h.Port > 65535 || h.Stay && h.Port == 0) || err != nil && h != (hello{}) {
			t.Errorf("%q is %+v, %v", text, h, err)
		}
	})
}
