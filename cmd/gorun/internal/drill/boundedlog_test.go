package drill

import (
	"bytes"
	"testing"
)

// TestBoundedLog: however much is written, the beginning is kept, and the writer does not fail.
func TestBoundedLog(t *testing.T) {
	var kept bytes.Buffer
	l := &boundedLog{to: &kept, left: 10}
	for _, text := range []string{"four", "four", "four", "four"} {
		if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if want := "fourfourfo\n(the rest of the output is left out)\n"; kept.String() != want {
		t.Errorf("%q, want %q", kept.String(), want)
	}
}
