package comm

import (
	"fmt"
	"net"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/tokenfile"
)

// A secret is what both ends of a connection prove to hold: the token that was given, or else the one that this user's programs
// have on this machine, which is good on loopback only.
type secret struct {
	token []byte
	file  string // that has the user's own; empty: the token was given
}

// secretOf is the secret of who was given token, which may be empty.
func secretOf(token []byte) (secret, error) {
	if len(token) > 0 {
		return secret{token: token}, nil
	}
	own, file, err := tokenfile.Loopback()
	if err != nil {
		return secret{}, fmt.Errorf("%w: give every rank the same secret in GORUN_TOKEN", err)
	}
	return secret{token: []byte(own), file: file}, nil
}

// isOwn says whether it is the user's own.
func (s secret) isOwn() bool { return s.file != "" }

// isFor says whether it is good for connections with other.
func (s secret) isFor(other net.Addr) bool {
	at, ok := other.(*net.TCPAddr)
	return !s.isOwn() || !ok || at.IP.IsLoopback()
}

// mark tells the user's own secret from another user's; it is empty for one that was given. Nobody learns the secret from it.
func (s secret) mark() string {
	if !s.isOwn() {
		return ""
	}
	return auth.Derive(s.token, "mark of a user's own token")[:16]
}

// refusedBy says why the other end of a connection may have another secret.
func (s secret) refusedBy(other string) error {
	if s.isOwn() {
		return fmt.Errorf("%s refused this user's own token, of %s: ranks of several users, or of containers, want the same secret in GORUN_TOKEN: %w", other, s.file, auth.ErrWrongToken)
	}
	return fmt.Errorf("%s refused our token: give every rank the same secret in GORUN_TOKEN: %w", other, auth.ErrWrongToken)
}
