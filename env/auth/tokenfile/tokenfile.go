// Package tokenfile reads tokens from files that nobody else can read: one that somebody has written ([Read]), and the one by
// which the programs of a user on one machine know each other when nobody gave them a token ([Loopback]).
package tokenfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// MaxToken is the most bytes of a token: it travels in the environment of workers.
const MaxToken = 1024

// Read is the token in a file, which it refuses if other users can read it.
func Read(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if err := checkPrivate(file); err != nil {
		return "", err
	}
	return read(file)
}

// read returns what is in the file but for white space around it; of a long one enough to see that it is too long.
func read(file *os.File) (string, error) {
	text, err := io.ReadAll(io.LimitReader(file, MaxToken+64))
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	return string(bytes.TrimSpace(text)), nil
}
