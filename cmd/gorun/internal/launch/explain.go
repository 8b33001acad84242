package launch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/env/manager"
)

// An ending is how a connection ended without an outcome.
type ending struct {
	hello  bool   // the proxy had said its first word
	code   int    // of the remote shell; negative: it was killed
	stderr string // the end of what it wrote there
	noise  string // the end of what came before the proxy's first word
	err    error  // of what was read; nil: it just ended
}

// sshFailed is the exit code with which ssh says that it has failed itself.
const sshFailed = 255

// The exit codes of a POSIX shell for a program that it cannot execute.
const (
	notExecutable = 126
	notFound      = 127
)

// advice is what to do about what ssh says.
var advice = []struct {
	said, do string
	code     int
}{
	{"Permission denied", "gorun does not ask for passwords: let ssh log in with a key (ssh-copy-id, ssh-agent)", codeCorrect},
	{"Host key verification failed", "check the host's key and accept it once: run ssh %s true", codeCorrect},
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", "check the host's key, and correct ~/.ssh/known_hosts", codeCorrect},
	{"Could not resolve hostname", "correct the name, or add it to ~/.ssh/config", codeUnreachable},
	{"Connection refused", "start an sshd there, or correct the port", codeUnreachable},
	{"Connection timed out", "check that the host is up, and the firewall", codeUnreachable},
	{"Operation timed out", "check that the host is up, and the firewall", codeUnreachable},
	{"No route to host", "check that the host is up, and the network", codeUnreachable},
	{"Network is unreachable", "check that the host is up, and the network", codeUnreachable},
	{"Cannot execute command-line and remote command", "give this host no RemoteCommand in ~/.ssh/config, or use --rsh \"ssh -o RemoteCommand=none\"", codeCorrect},
	{"Bad configuration option", "correct ~/.ssh/config", codeCorrect},
	{"not responding", "check that the host is up, and the network", codeUnreachable},
	{"kex_exchange_identification", "too many connections at once? See MaxStartups in the host's sshd_config", codeUnreachable},
	{"Connection closed by", "too many connections at once? See MaxStartups in the host's sshd_config", codeUnreachable},
	{"Connection reset by", "too many connections at once? See MaxStartups in the host's sshd_config", codeUnreachable},
}

// failure says in one line why there is no outcome.
func (e ending) failure(h manager.Host, path string) *Failure {
	said := lastLine(e.stderr)
	if e.hello {
		text := "the host is lost: the connection has ended"
		if e.err != nil && !isEnd(e.err) {
			text = "the connection was broken: " + e.err.Error()
		}
		if said != "" {
			text += ": " + said
		}
		return &Failure{h.Name, "running the job", text, codeLost}
	}
	if e.code == sshFailed {
		for _, a := range advice {
			if strings.Contains(e.stderr, a.said) {
				if strings.Contains(a.do, "%s") {
					a.do = fmt.Sprintf(a.do, h.Name)
				}
				return &Failure{h.Name, "connecting", lineWith(e.stderr, a.said) + ": " + a.do, a.code}
			}
		}
		return &Failure{h.Name, "connecting", cmp.Or(said, "ssh failed, and did not say why"), codeUnreachable}
	}
	if e.code == notExecutable {
		if file := strings.TrimPrefix(path, "~/"); strings.Contains(e.stderr, file) { // fish shows the command after what it says of it
			said = lineWith(e.stderr, file)
		}
		return &Failure{h.Name, "starting gorun", fmt.Sprintf("%s cannot be executed there: %s: check its mode, its architecture, and that its file system is not mounted noexec", path, cmp.Or(said, "permission denied")), codeCorrect}
	}
	if e.isMissing(path) {
		return &Failure{h.Name, "starting gorun", fmt.Sprintf("no gorun at %s there: install it, say where it is with --remote-path, or let --copy copy it", path), codeCorrect}
	}
	text, code := fmt.Sprintf("%s ended with exit code %d before it said anything", path, e.code), codeCorrect
	switch {
	case e.err != nil && !isEnd(e.err):
		text = fmt.Sprintf("%s is no gorun of this version, or the login shell prints too much: %v", path, e.err)
	case isKilled(e.code):
		text, code = "the remote shell was killed", codeUnreachable
	case e.code == 0:
		text = fmt.Sprintf("%s is no gorun of this version", path)
	}
	if noise := lastLine(e.noise); noise != "" {
		text += fmt.Sprintf("; on stdout: %q", noise)
	}
	if said != "" {
		text += fmt.Sprintf("; on stderr: %q", said)
	}
	return &Failure{h.Name, "starting gorun", text, code}
}

// isKilled reports whether a signal has ended a remote shell, or what it ran there: nothing is to be corrected then.
func isKilled(code int) bool { return code < 0 || code > 128 && code != sshFailed }

// A failedCopy is how copying gorun ended without success.
type failedCopy struct {
	begun  bool          // the host had said what it is
	misfit bool          // it cannot run this gorun: err says why
	sent   int64         // bytes
	size   int64         // of the binary, in bytes
	stall  time.Duration // after which the host gives up if nothing comes
	code   int           // of the remote shell; negative: it was killed
	stderr string        // the end of what it wrote there
	err    error
}

// failure says in one line why gorun is not there.
func (u failedCopy) failure(h manager.Host, path string) *Failure {
	const megabyte = 1_000_000
	said := lastLine(u.stderr)
	extent := fmt.Sprintf("%d of %d MB", u.sent/megabyte, (u.size+megabyte-1)/megabyte)
	text, code := path+": "+cmp.Or(said, u.err.Error()), codeCorrect
	switch {
	case u.misfit:
		text = u.err.Error()
	case errors.Is(u.err, errStalled):
		text, code = fmt.Sprintf("nothing came for %v after %s, and the host gave it up: check the network, and start the job again", u.stall, extent), codeUnreachable
	case u.code == sshFailed && !u.begun:
		return ending{code: u.code, stderr: u.stderr}.failure(h, path)
	case u.code == sshFailed || isKilled(u.code):
		text, code = "the connection was lost after "+extent, codeUnreachable
		if said != "" {
			text += " (" + said + ")"
		}
		text += ": check that the host is up, and the network, and start the job again"
	}
	return &Failure{h.Name, "copying gorun", text, code}
}

// isEnd reports whether an error only says that nothing more came.
func isEnd(err error) bool {
	noise, ok := errors.AsType[*frame.NoiseError](err)
	if ok {
		err = noise.Err
	}
	return strings.HasSuffix(err.Error(), "EOF") || strings.Contains(err.Error(), "closed")
}

// needsCopy reports whether a copy can help, because what is at the path has not said its first word, and so may be no gorun. After a power
// failure the file may be empty or cut off. A signal ends such a program: then ssh fails as well, and does not say why.
func (e ending) needsCopy() bool {
	return !e.hello && (e.code != sshFailed || strings.TrimSpace(e.stderr) == "")
}

// isMissing reports whether the shell on the host has found no program to execute. Shells other than sh say so only in words, and what
// a login shell says of other programs does not count.
func (e ending) isMissing(path string) bool {
	if e.hello || e.code == sshFailed || e.code <= 0 {
		return false
	}
	if e.code == notFound || e.code == notExecutable {
		return true
	}
	for line := range strings.Lines(e.stderr) {
		if strings.Contains(line, strings.TrimPrefix(path, "~/")) && slices.ContainsFunc(wordsOfMissing, func(said string) bool { return strings.Contains(line, said) }) {
			return true
		}
	}
	return false
}

// wordsOfMissing are what shells say of a program that they do not find.
var wordsOfMissing = []string{"not found", "No such file", "Unknown command"}

const maxLine = 300 // bytes of what others say in an error

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return cut(lines[len(lines)-1])
}

// lineWith returns the line of text that contains a part.
func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return cut(line)
		}
	}
	return part
}

func cut(line string) string {
	line = strings.TrimSpace(line)
	if len(line) > maxLine {
		line = line[:maxLine] + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(line, string(utf8.RuneError)))
}
