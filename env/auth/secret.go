package auth

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// MinSecret is the least length of a secret, in bytes, where others than this machine's can see what is made of it: a
// recorded handshake or a certificate lets a guess be tried without asking anybody.
const MinSecret = 16

// minVariety is how many different bytes a secret has at least. One made at random, of 16 hexadecimal digits or more, has fewer
// once in 100,000 times.
const minVariety = 6

// CheckSecret refuses a secret that can be guessed because it is too short, or repeats a few characters. It cannot see whether one
// that looks good was made at random.
func CheckSecret(secret []byte) error {
	if len(secret) < MinSecret {
		return fmt.Errorf("the token has %d bytes and could be guessed: want at least %d, as of openssl rand -hex 32", len(secret), MinSecret)
	}
	var seen [256]bool
	variety := 0
	for _, c := range secret {
		if !seen[c] {
			seen[c], variety = true, variety+1
		}
	}
	if variety < minVariety {
		return fmt.Errorf("the token has only %d different characters and could be guessed: want one made at random, as of openssl rand -hex 32", variety)
	}
	return nil
}

// Derive makes a secret of 64 hexadecimal digits for one purpose of another secret (HKDF-SHA-256, RFC 5869). Who learns it learns
// neither that secret nor what is made of it for other purposes.
func Derive(secret []byte, purpose string) string {
	key, err := hkdf.Key(sha256.New, secret, nil, "gorun 1 "+purpose, sha256.Size)
	if err != nil { // only a key of more than 255 hashes fails
		panic(err)
	}
	return hex.EncodeToString(key)
}
