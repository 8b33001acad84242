package launcher

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestAppendValid(t *testing.T) {
	const bad = "\uFFFD"
	tests := []struct{ name, in, want string }{
		{"text", "a ∀ 🙂 \x00\x1b[1m\r\n", "a ∀ 🙂 \x00\x1b[1m\r\n"},
		{"the character itself", "\uFFFD", "\uFFFD"},
		// The tables 3-8 to 3-11 of the Unicode standard.
		{"not shortest", "\xC0\xAF\xE0\x80\xBF\xF0\x81\x82A", strings.Repeat(bad, 8) + "A"},
		{"surrogates", "\xED\xA0\x80\xED\xBF\xBF\xED\xAFA", strings.Repeat(bad, 8) + "A"},
		{"beyond Unicode", "\xF4\x91\x92\x93\xFFA\x80\xBFB", strings.Repeat(bad, 5) + "A" + bad + bad + "B"},
		{"truncated", "\xE1\x80\xE2\xF0\x91\x92\xF1\xBFA", strings.Repeat(bad, 4) + "A"},
		{"truncated by a newline", "\xE2\x82\n\xF0\x9F\x99\n", bad + "\n" + bad + "\n"},
		{"at the end", "x\xF0\x9F\x99", "x" + bad},
	}
	for _, tt := range tests {
		if got := string(appendValid([]byte("> "), []byte(tt.in))); got != "> "+tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestAppendValidKeepsWhatIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, bad, after := rapid.String().Draw(t, "before"), rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "bytes"), rapid.String().Draw(t, "after")
		got := appendValid(nil, []byte(before+"|"+string(bad)+"|"+after))
		if !utf8.Valid(got) || !bytes.HasPrefix(got, []byte(before+"|")) || !bytes.HasSuffix(got, []byte("|"+after)) {
			t.Fatalf("%q", got)
		}
		if utf8.Valid(bad) && string(got) != before+"|"+string(bad)+"|"+after {
			t.Fatalf("%q is changed", got)
		}
	})
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", "a\r": "a", "\ra": "a", "a\rb": "b", "a\rb\r\r": "b", "a\r\rb": "b", "\r\r": "", "long\rx": "x",
	} {
		if got := Visible([]byte(in)); string(got) != want {
			t.Errorf("%q shows %q, want %q", in, got, want)
		}
	}
}
