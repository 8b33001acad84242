package launcher

import (
	"fmt"
	"strconv"
	"strings"
)

// Std is a set of a worker's output streams.
type Std uint8

// The sets of streams, with torchrun's numbers.
const (
	None   Std = 0
	Stdout Std = 1
	Stderr Std = 2
	Both   Std = Stdout | Stderr
)

// file returns the name of the log file of one stream.
func (s Std) file() string {
	if s == Stderr {
		return "stderr.log"
	}
	return "stdout.log"
}

// StdMap holds a Std for every local rank. The zero value is None for all.
type StdMap struct {
	Default Std         // of the local ranks that Ranks does not name
	Ranks   map[int]Std // by local rank
}

// For returns the streams of a local rank.
func (m StdMap) For(localRank int) Std {
	if s, ok := m.Ranks[localRank]; ok {
		return s
	}
	return m.Default
}

// ParseStd parses the value of --redirects and --tee: "3" for all local ranks, or "0:3,12:1" for those named,
// and None for the others. The streams are 0 (none), 1 (stdout), 2 (stderr) and 3 (both). The error is one
// line that says what is wanted.
func ParseStd(s string) (StdMap, error) {
	const want = "want 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or a list by local rank such as 0:3,1:2"
	if !strings.Contains(s, ":") {
		std, ok := parseStream(s)
		if !ok {
			return StdMap{}, fmt.Errorf("%q: %s", s, want)
		}
		return StdMap{Default: std}, nil
	}
	m := StdMap{Ranks: map[int]Std{}}
	for item := range strings.SplitSeq(s, ",") {
		rank, stream, _ := strings.Cut(item, ":")
		n, err := strconv.ParseUint(rank, 10, 31)
		std, ok := parseStream(stream)
		if err != nil || !ok {
			return StdMap{}, fmt.Errorf("%q in %q: %s", item, s, want)
		}
		if _, twice := m.Ranks[int(n)]; twice {
			return StdMap{}, fmt.Errorf("%q: local rank %d is named twice", s, n)
		}
		m.Ranks[int(n)] = std
	}
	return m, nil
}

func parseStream(s string) (Std, bool) {
	if len(s) != 1 || s[0] < '0' || s[0] > '3' {
		return None, false
	}
	return Std(s[0] - '0'), true
}

// IsUsed reports whether m names a stream of any worker.
func (m StdMap) IsUsed() bool {
	for _, s := range m.Ranks {
		if s != None {
			return true
		}
	}
	return m.Default != None
}
