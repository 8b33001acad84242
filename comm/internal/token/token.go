// Package token has the secret by which both ends of a connection between ranks, or to a store, authenticate each
// other.
package token

import (
	"fmt"
	"net"

	"github.com/gorun/gorun/env/auth"
)

// A Token is the secret that both ends of a connection prove that they have. The user sets it. If not, it is the
// loopback token, which all programs of this user have on this machine, and which is valid on loopback only.
type Token struct {
	bytes []byte
	file  string // of the loopback token; empty: the user has set the token
}

// Or returns set as a Token or, if that is empty, the loopback token.
func Or(set []byte) (Token, error) {
	if len(set) > 0 {
		return Token{bytes: set}, nil
	}
	loopback, file, err := auth.LoopbackToken()
	if err != nil {
		return Token{}, fmt.Errorf("%w: give every rank the same secret in GORUN_TOKEN", err)
	}
	return Token{bytes: []byte(loopback), file: file}, nil
}

// Bytes returns the secret. It is empty for the zero Token, with which no connection is possible.
func (t Token) Bytes() []byte { return t.bytes }

// IsLoopback reports whether t is the loopback token.
func (t Token) IsLoopback() bool { return t.file != "" }

// Allows reports whether t is valid for connections with remote.
func (t Token) Allows(remote net.Addr) bool {
	tcp, ok := remote.(*net.TCPAddr)
	return !t.IsLoopback() || !ok || tcp.IP.IsLoopback()
}

// Fingerprint tells the loopback tokens of different users apart, without revealing them. It is empty for a token that
// the user has set.
func (t Token) Fingerprint() string {
	if !t.IsLoopback() {
		return ""
	}
	return auth.Derive(t.bytes, "mark of a user's own token")[:16]
}

// RefusedBy returns the error of a connection whose other end has another token. It wraps [auth.ErrWrongToken].
func (t Token) RefusedBy(other string) error {
	if t.IsLoopback() {
		return fmt.Errorf("%s refused this user's own token, from %s: give ranks of several users, or in several containers, the same secret in GORUN_TOKEN: %w", other, t.file, auth.ErrWrongToken)
	}
	return fmt.Errorf("%s refused our token: give every rank the same secret in GORUN_TOKEN: %w", other, auth.ErrWrongToken)
}
