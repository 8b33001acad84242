package cli

import (
	"strings"

	"github.com/gorun/gorun/env/auth"
)

// loadToken reads the token file, if there is one, and checks the token; it is never shown.
func (o *options) loadToken() error {
	from := "GORUN_TOKEN"
	if o.tokenFile != "" {
		from = o.given["rdzv-token-file"]
		text, err := auth.ReadTokenFile(o.tokenFile)
		if err != nil {
			return usagef("%s: %w", from, err)
		}
		o.token = text
	} else if o.token == "" {
		return nil
	}
	isVisible := func(r rune) bool { return r > ' ' && r < 0x7f }
	if len(o.token) < auth.MinSecret || len(o.token) > auth.MaxToken || strings.ContainsFunc(o.token, func(r rune) bool { return !isVisible(r) }) {
		return usagef("%s: want a token of %d to %d visible ASCII characters, such as the output of openssl rand -hex 32", from, auth.MinSecret, auth.MaxToken)
	}
	if err := auth.CheckSecret([]byte(o.token)); err != nil {
		return usagef("%s: %w", from, err)
	}
	return nil
}
