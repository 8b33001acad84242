package comm

import (
	"fmt"
	"net"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/tokenfile"
)

// A secret is what both ends of a connection prove that they have: the token that ranks were given, or else the user's own (see
// package tokenfile), which is good on loopback only.
type secret struct {
	token []byte
	file  string // of the user's own token; empty: the token was given
}

// secretOf returns the secret for a given token, or the user's own if that is empty.
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

// isOwn reports whether the token is the user's own.
func (s secret) isOwn() bool { return s.file != "" }

// isFor reports whether the secret is good for a connection to other.
func (s secret) isFor(other net.Addr) bool {
	at, ok := other.(*net.TCPAddr)
	return !s.isOwn() || !ok || at.IP.IsLoopback()
}

// mark tells the own tokens of different users apart, and gives nothing of the token away. It is empty if the token was given.
func (s secret) mark() string {
	if !s.isOwn() {
		return ""
	}
	return auth.Derive(s.token, "mark of a user's own token")[:16]
}

// refusedBy returns the error of a connection whose other end has another secret.
func (s secret) refusedBy(other string) error {
	if s.isOwn() {
		return fmt.Errorf("%s refused this user's own token, from %s: give ranks of several users, or in several containers, the same secret in GORUN_TOKEN: %w", other, s.file, auth.ErrWrongToken)
	}
	return fmt.Errorf("%s refused our token: give every rank the same secret in GORUN_TOKEN: %w", other, auth.ErrWrongToken)
}
