// Package munge gives the processes of one user on a cluster the same secret. The cluster must have MUNGE, as clusters with Slurm do: a
// daemon on every machine signs and encrypts short texts, its credentials, with a key of the cluster. A credential says which user has made
// it, and can be restricted to one user who may decode it.
//
// One process has the secret and is a [Server]. The others call [Ask]. What they exchange, one line each:
//
//	caller  a credential that only its own user can decode: purpose, member and process, nonce
//	server  a credential that only its own user can decode: purpose, nonce, secret; or a word that says why not
//
// The server decodes the first, which proves that the caller belongs to its own user on the same cluster; the caller decodes the second,
// which proves the same of the server. The nonce is new each time, so that an old answer is no answer. Nobody on the network can read the
// secret. The purpose is the job: a caller does not get the secret of another job.
package munge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/gorun/gorun/env/auth"
)

// Available reports whether this machine has the programs munge and unmunge. Whether their daemon runs is another question.
func Available() bool {
	_, err1 := exec.LookPath("munge")
	_, err2 := exec.LookPath("unmunge")
	return err1 == nil && err2 == nil
}

const (
	maxCredential = 4096    // bytes
	maxOutput     = 1 << 20 // bytes that are kept of what a program writes
	prefix        = "MUNGE:"
)

// encode returns a credential with text that only this user can decode. The text is not in any command line, which others could read.
func encode(ctx context.Context, text string) (string, error) {
	out, err := run(ctx, text, "munge", "--cipher=aes128", "--restrict-uid="+strconv.Itoa(os.Geteuid()))
	if err != nil {
		return "", err
	}
	credential := strings.TrimSpace(out)
	if !isCredential(credential) {
		return "", fmt.Errorf("munge has written something else than a credential: %.40q", credential)
	}
	return credential, nil
}

// decode returns the text of a credential that this user has made. MUNGE refuses one that is too old, or that this machine has decoded
// before.
func decode(ctx context.Context, credential string) (string, error) {
	if !isCredential(credential) {
		return "", errors.New("not a MUNGE credential")
	}
	out, err := run(ctx, credential, "unmunge", "--keys=UID,LENGTH")
	if err != nil {
		return "", err
	}
	metadata, text, found := strings.Cut(out, "\n\n")
	uid, ok := uidIn(metadata)
	switch {
	case !found || !ok:
		return "", fmt.Errorf("unmunge does not say whose credential it is: %.100q", metadata)
	case uid != os.Geteuid():
		return "", errOtherUser
	}
	return text, nil
}

var errOtherUser = errors.New("it is another user's")

func isCredential(s string) bool {
	return strings.HasPrefix(s, prefix) && strings.HasSuffix(s, ":") && len(s) <= maxCredential && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// uidIn returns the number of the user in what unmunge says of a credential: "UID: root (0)", or a number alone.
func uidIn(metadata string) (int, bool) {
	for line := range strings.Lines(metadata) {
		value, ok := strings.CutPrefix(line, "UID:")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		if i := strings.LastIndexByte(value, '('); i >= 0 {
			value, ok = strings.CutSuffix(value[i+1:], ")")
		}
		uid, err := strconv.Atoi(value)
		return uid, ok && err == nil && uid >= 0
	}
	return 0, false
}

// run runs a program of MUNGE. An error has what the program says.
func run(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, append(args, socketFlag()...)...)
	out, problem := bounded{most: maxOutput}, bounded{most: maxCredential}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &problem
	err := cmd.Run()
	said, _, _ := strings.Cut(strings.TrimSpace(problem.String()), "\n")
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && said != "":
		return "", errors.New(auth.Printable(said)) // it begins with the name of the program
	case err != nil:
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return out.String(), nil
}

// A bounded buffer keeps the first bytes that are written to it. Writes of more succeed, so that the writer goes on. It does not embed
// a bytes.Buffer, whose ReadFrom would read without a bound.
type bounded struct {
	most int
	text []byte
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:max(0, min(len(p), b.most-len(b.text)))]...)
	return len(p), nil
}

// String returns what is kept.
func (b *bounded) String() string { return string(b.text) }
