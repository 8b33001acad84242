package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gorun/gorun/env/auth"
)

// maxToken is the most bytes of a token: it travels in the environment of workers.
const maxToken = 1024

// loadToken reads the token file, if there is one, and checks the token; it is never shown.
func (o *options) loadToken() error {
	from := "GORUN_TOKEN"
	if o.tokenFile != "" {
		from = o.given["rdzv-token-file"]
		text, err := readToken(o.tokenFile)
		if err != nil {
			return usagef("%s: %w", from, err)
		}
		o.token = text
	} else if o.token == "" {
		return nil
	}
	isVisible := func(r rune) bool { return r > ' ' && r < 0x7f }
	if len(o.token) < auth.MinSecret || len(o.token) > maxToken || strings.ContainsFunc(o.token, func(r rune) bool { return !isVisible(r) }) {
		return usagef("%s: want a token of %d to %d visible ASCII characters, as of openssl rand -hex 32", from, auth.MinSecret, maxToken)
	}
	if err := auth.CheckSecret([]byte(o.token)); err != nil {
		return usagef("%s: %w", from, err)
	}
	return nil
}

func readToken(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if err := checkPrivate(file); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxToken+64))
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	return string(bytes.TrimSpace(text)), nil
}
