package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// A token is long enough not to be guessed, and short enough for the environment.
const minToken, maxToken = 16, 1024

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
	if len(o.token) < minToken || len(o.token) > maxToken || strings.ContainsFunc(o.token, func(r rune) bool { return !isVisible(r) }) {
		return usagef("%s: want a token of %d to %d visible ASCII characters, as of openssl rand -hex 32", from, minToken, maxToken)
	}
	return nil
}

func readToken(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxToken+64))
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	return string(bytes.TrimSpace(text)), nil
}
