package token

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/auth"

	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.OwnSettings(m).Run()) }

// Without a token that was given, that of this user counts, and only on loopback.
func TestOr(t *testing.T) {
	own, file, err := auth.LoopbackToken()
	if err != nil {
		t.Fatal(err)
	}
	local := &net.TCPAddr{IP: net.IPv6loopback, Port: 1}
	remote := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	unix := &net.UnixAddr{Name: "@desk", Net: "unix"}
	for _, c := range []struct {
		given, want string
		loopback    bool
	}{{"given", "given", false}, {"", own, true}} {
		token, err := Or([]byte(c.given))
		if err != nil || string(token.Bytes()) != c.want || token.IsLoopback() != c.loopback {
			t.Errorf("Or(%q) is the loopback token: %t, %v", c.given, token.IsLoopback(), err)
		}
		if !token.Allows(local) || !token.Allows(unix) || token.Allows(remote) == c.loopback {
			t.Errorf("Or(%q) allows %v: %t, %v: %t, %v: %t", c.given, local, token.Allows(local), unix, token.Allows(unix), remote, token.Allows(remote))
		}
		refused := token.RefusedBy("store at host:1")
		if !errors.Is(refused, auth.ErrWrongToken) || strings.Contains(refused.Error(), file) != c.loopback {
			t.Errorf("Or(%q) is refused: %v", c.given, refused)
		}
	}
}

// Fingerprints differ between users, are the same in all processes of one, and do not contain the token.
func TestFingerprint(t *testing.T) {
	one, two := Token{bytes: []byte("one of 16 bytes "), file: "f"}, Token{bytes: []byte("two of 16 bytes "), file: "f"}
	again := Token{bytes: []byte("one of 16 bytes "), file: "another name of f"}
	switch {
	case one.Fingerprint() == two.Fingerprint(), one.Fingerprint() != again.Fingerprint(), len(one.Fingerprint()) != 16:
		t.Errorf("fingerprints %q, %q, and %q as the first", one.Fingerprint(), two.Fingerprint(), again.Fingerprint())
	case (Token{bytes: []byte("one of 16 bytes ")}).Fingerprint() != "":
		t.Error("a token that was given has a fingerprint")
	}
}
