package protocoltest

import "testing"

func TestFirstChange(t *testing.T) {
	for _, c := range []struct {
		old, now, was, is string
		changed           bool
	}{
		{"", "", "", "", false},
		{"a\nb\n", "a\nb\n", "", "", false},
		{"a\nb\n", "a\nc\n", "b", "c", true},
		{"a\nb\nc\n", "a\nc\n", "b", "c", true},
		{"a\n", "a\nb\n", "", "b", true},
		{"a\nb\n", "a\n", "b", "", true},
	} {
		if was, is, changed := firstChange(c.old, c.now); was != c.was || is != c.is || changed != c.changed {
			t.Errorf("%q, %q: got %q, %q, %t", c.old, c.now, was, is, changed)
		}
	}
}
