package auth

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// MinSecret is the least length of a secret, in bytes, if other machines can see what is derived from it: with a
// recorded handshake or a certificate, guesses can be tried offline.
const MinSecret = 16

// minVariety is the least number of different bytes in a secret. A random secret of 16 or more hexadecimal digits has fewer
// only once in 100,000 times.
const minVariety = 6

// CheckSecret returns an error for a secret that can be guessed because it is too short or repeats a few characters. It cannot
// tell whether another secret is random.
func CheckSecret(secret []byte) error {
	if len(secret) < MinSecret {
		return fmt.Errorf("the token has %d bytes and could be guessed: want at least %d, such as the output of openssl rand -hex 32", len(secret), MinSecret)
	}
	var seen [256]bool
	variety := 0
	for _, c := range secret {
		if !seen[c] {
			seen[c], variety = true, variety+1
		}
	}
	if variety < minVariety {
		return fmt.Errorf("the token has only %d different characters and could be guessed: want a random one, such as the output of openssl rand -hex 32", variety)
	}
	return nil
}

// Derive derives a secret of 64 hexadecimal digits for one purpose from another secret (HKDF-SHA-256, RFC 5869). It reveals
// neither the other secret nor what is derived from that for other purposes.
func Derive(secret []byte, purpose string) string {
	key, err := hkdf.Key(sha256.New, secret, nil, "gorun 1 "+purpose, sha256.Size)
	if err != nil { // only a key of more than 255 hashes fails
		panic(err)
	}
	return hex.EncodeToString(key)
}

// NewSecret returns a random secret of 64 hexadecimal digits.
func NewSecret() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return hex.EncodeToString(secret)
}
