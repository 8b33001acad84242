package auth

import (
	"strings"
	"testing"
)

func TestCheckSecret(t *testing.T) {
	for secret, good := range map[string]bool{
		"":                                 false,
		"zulu":                             false,
		"0123456789abcde":                  false,
		strings.Repeat("a", 64):            false,
		strings.Repeat("abcde", 10):        false,
		"0123456789abcdef":                 true,
		"d41d8cd98f00b204e9800998ecf8427e": true,
	} {
		if err := CheckSecret([]byte(secret)); (err == nil) != good {
			t.Errorf("%q: %v", secret, err)
		} else if err != nil && secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("%q is in its error: %v", secret, err)
		}
	}
}

// TestDerive: one secret for each purpose, and always the same.
func TestDerive(t *testing.T) {
	secret := []byte("0123456789abcdef")
	a, b := Derive(secret, "workers of job a"), Derive(secret, "workers of job b")
	if a == b || a != Derive(secret, "workers of job a") || a == Derive([]byte("another secret"), "workers of job a") {
		t.Error("derived secrets are equal where they must differ, or differ where they must be equal")
	}
	if err := CheckSecret([]byte(a)); err != nil || len(a) != 64 {
		t.Errorf("derived %q: %v", a, err)
	}
	// Nodes of different builds agree on it.
	if want := "d8bb22050287a03f189aa852e9b168cbb1b705f8fef367addd036899df8237c2"; a != want {
		t.Errorf("derived %s, want %s", a, want)
	}
}
