package limited

import (
	"io"
	"strings"
	"testing"
)

// TestBuffer: also io.Copy, which os/exec uses, keeps no more.
func TestBuffer(t *testing.T) {
	b := Buffer{Max: 5}
	for _, text := range []string{"ab", "", "cdef", "g"} {
		if n, err := io.Copy(&b, strings.NewReader(text)); n != int64(len(text)) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if got := b.String(); got != "abcde" {
		t.Errorf("%q", got)
	}
}
