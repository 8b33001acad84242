// Package tokenfile reads tokens from files that other users cannot read. [Read] reads a file that somebody has written.
// [Loopback] reads, or makes, the file with the user's own token: by it the user's programs on this machine know each other when
// nobody has given them one.
package tokenfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// MaxToken is how many bytes a token may have: it travels in the environment of workers.
const MaxToken = 1024

// Read returns the token in a file. It refuses a file that other users can read.
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

// read returns what is in the file, without the white space around it. Of a token that is too long it returns enough to show that.
func read(file *os.File) (string, error) {
	text, err := io.ReadAll(io.LimitReader(file, MaxToken+64))
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	return string(bytes.TrimSpace(text)), nil
}
