package launch

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// A Copy is gorun's own binary, which is copied to hosts that do not have it.
type Copy struct {
	Path string // on the hosts: a directory for each version and content, below the user's cache
	file string
	size int64
}

// NewCopy returns the Copy of a binary.
func NewCopy(version, file string) (*Copy, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	hash := sha256.New()
	size, err := io.Copy(hash, f)
	if err != nil {
		return nil, err
	}
	version = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._+-", r) {
			return r
		}
		return '_'
	}, version)
	return &Copy{fmt.Sprintf("~/.cache/gorun/%s-%x/gorun", version, hash.Sum(nil)[:8]), file, size}, nil
}

const (
	copyMark    = "gorun-copy-to"      // begins the line in which the host says what it is
	copyStalled = "gorun-copy-stalled" // begins the line in which it says that it has given the copy up
)

// errStalled says that the host has given the copy up because nothing has come for long.
var errStalled = errors.New("the host has given the copy up")

// command is the script that takes the binary from stdin. It is in single quotes, and has no quote, backslash, exclamation mark other than
// that of $!, or line break inside, so every shell passes it on to sh as it is. It does the following:
//
//   - It removes files of other copies in which nobody has written for an hour: such a script was killed.
//   - It writes to a file t in the directory d. That file takes the place of gorun only when all bytes have come and, if the host's dd can do
//     that, are on the disk.
//   - cat, the process c, copies stdin to t. A watcher, the process w, kills it when t has not grown for so many seconds: nobody tells sh
//     when the network fails. Then the exit code s is 143, or 271 in ksh.
func (c *Copy) command(stall time.Duration) string {
	dir := "$HOME/" + strings.TrimSuffix(strings.TrimPrefix(c.Path, "~/"), "/gorun")
	seconds := int(max(stall.Seconds(), 1))
	return fmt.Sprintf(`exec sh -c 'umask 077; d="%s"; t="$d/gorun.$(uname -n).$$"; echo %s "$(uname -s)" "$(uname -m)"; `+
		`find "$HOME/.cache/gorun" -type f -name "gorun.*" -mmin +60 -exec rm -f {} + 2>/dev/null; `+
		`test -d "$d/gorun" && { echo it is a directory: remove it >&2; exit 1; }; `+
		`mkdir -p "$d" && : >"$t" && exec 3<&0 && { cat <&3 >"$t" & c=$!; exec 3<&-; `+
		`(n=0; was=; while sleep 1 && kill -0 $c; do is=$(wc -c <"$t"); n=$((n+1)); test "$is" = "$was" || n=0; was=$is; test $n -lt %d || kill $c; done) >/dev/null 2>&1 <&- & w=$!; `+
		`wait $c; s=$?; case $s in 143|271) echo %s;; esac; test $s -ne 0 || dd if=/dev/null of="$t" conv=notrunc,fsync 2>/dev/null; `+
		`if test $s -eq 0 && test "$(wc -c <"$t")" -eq %d && chmod 755 "$t" && mv -f "$t" "$d/gorun"; then echo done; else rm -f "$t"; fi; kill $w 2>/dev/null || :; }'`,
		dir, copyMark, seconds, copyStalled, c.size)
}

// machines are the names that uname has for what this binary runs on.
var machines = map[string][]string{"amd64": {"x86_64", "amd64"}, "arm64": {"aarch64", "arm64"}}

// fits returns an error unless the binary runs on a machine of which uname says this.
func fits(system, machine string) error {
	here := runtime.GOOS + "/" + runtime.GOARCH
	there := strings.ToLower(system) + "/" + machine
	for _, name := range append(machines[runtime.GOARCH], runtime.GOARCH) {
		if there == runtime.GOOS+"/"+name {
			return nil
		}
	}
	return fmt.Errorf("the host is %s, and this gorun is for %s: install gorun there yourself, and say where with --remote-path", cut(there), here)
}

// copy copies gorun to the host.
func (s *session) copy(ctx context.Context) *Failure {
	c, h := s.config.Copy, s.config.Hosts[s.host]
	u := failedCopy{size: c.size, stall: s.config.Silence}
	conn, err := connect(ctx, s.starter, s.config.Shell.Argv(h, c.command(u.stall)))
	if err != nil {
		return &Failure{h.Name, "copying gorun", err.Error(), codeCorrect}
	}
	defer context.AfterFunc(ctx, conn.kill)()
	r := bufio.NewReader(io.LimitReader(conn.stdout, 1<<20)) // more than any login shell prints
	u.err = s.transfer(conn, r, &u)
	conn.stdin.Close()
	if u.misfit {
		conn.kill()
	}
	conn.awaitExit()
	if u.err != nil {
		_ = conn.stdout.SetReadDeadline(time.Now().Add(restTimeout))
		if _, err := awaitWords(r, "done"); errors.Is(err, errStalled) { // the host may have said so, and nobody has read it yet
			u.err = err
		}
	}
	_ = conn.stdout.Close()
	u.code, u.stderr = conn.cmd.ProcessState.ExitCode(), conn.stderr.String()
	if u.err == nil {
		return nil
	}
	return u.failure(h, s.config.Path)
}

// transfer sends the binary when the host has said that it takes it, and waits until it has.
func (s *session) transfer(conn *connection, r *bufio.Reader, u *failedCopy) error {
	fields, err := awaitWords(r, copyMark)
	if err != nil {
		return err
	}
	u.begun = true
	if len(fields) == 2 {
		if err := fits(fields[0], fields[1]); err != nil {
			u.misfit = true
			return err
		}
	}
	s.events <- copying{s.host, true}
	defer func() { s.events <- copying{s.host, false} }()
	if err := s.sendFile(conn, &u.sent); err != nil {
		return err
	}
	conn.stdin.Close()
	_, err = awaitWords(r, "done")
	return err
}

// awaitWords returns the words behind first in the line that begins with it.
func awaitWords(r *bufio.Reader, first string) ([]string, error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("the host has not answered as expected: %w", err)
		}
		switch fields := strings.Fields(line); {
		case len(fields) == 0:
		case fields[0] == first:
			return fields[1:], nil
		case fields[0] == copyStalled:
			return nil, errStalled
		}
	}
}

// copyPiece is how much of the binary is sent at one time.
const copyPiece = 256 << 10

// sendFile sends the binary, and counts what it has sent. Each piece that the connection takes is a sign of life.
func (s *session) sendFile(conn *connection, sent *int64) error {
	f, err := os.Open(s.config.Copy.file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	ended := errors.New("the connection has ended")
	buf := make([]byte, copyPiece)
	for {
		n, err := f.Read(buf)
		if !conn.to.Put(buf[:n]) {
			return ended
		}
		if room := conn.to.Full(copyPiece); room != nil {
			select {
			case <-room:
			case <-conn.exited:
				return ended
			}
			s.events <- alive{s.host}
		}
		*sent += int64(n)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
