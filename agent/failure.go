package agent

import (
	"maps"
	"slices"
	"strings"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// maxText and maxStderr limit the texts of a failure in bytes. Even if JSON needs 6 bytes for each, there is room for the rest.
const (
	maxText   = 6_500
	maxStderr = 2_500
)

// failureOf describes a worker's failure for other nodes, with the text of its error file or else of its stderr. It reads the
// error files of all workers of this node, which may take errorFileTimeout. If any of them asks for no restart, none follows: that
// worker may have failed first and ended last.
func failureOf(c Config, round *rendezvous.Round, x death.Death) *rendezvous.Failure {
	e := WorkerError{Root: x, ErrorFiles: readErrorFiles(c, round, everyone(round))}
	lines := e.explanation(x, rootLines)
	if note := e.note(x, e.ErrorFiles[x.Rank]); note != "" {
		lines = append([]string{note}, lines...)
	}
	x.Why, x.Stderr = cut(Printable(x.Why)), lastOf(slices.Clone(x.Stderr), maxStderr)
	return &rendezvous.Failure{
		Death: x, Node: c.Node.ID, Text: strings.Join(lastOf(lines, maxText), "\n"),
		Final:       asksForNoRestart(x) || e.noRestart(),
		Unreachable: e.unreachable(), FailedPeer: e.ErrorFiles[x.Rank].FailedPeer,
	}
}

// everyone returns the workers of this node in a round.
func everyone(round *rendezvous.Round) []death.Death {
	list := make([]death.Death, round.Node.Nproc)
	for local := range list {
		list[local] = death.Death{Rank: round.Place.FirstRank + local, LocalRank: local}
	}
	return list
}

// noRestart reports whether a worker has asked for no restart in its error file.
func (e *WorkerError) noRestart() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(e.ErrorFiles)), func(r ErrorFile) bool { return r.NoRestart })
}

// unreachable returns the peers that did not answer workers.
func (e *WorkerError) unreachable() (peers []rendezvous.Peer) {
	for _, rank := range slices.Sorted(maps.Keys(e.ErrorFiles)) {
		for _, p := range e.ErrorFiles[rank].Unreachable {
			if !slices.Contains(peers, p) && len(peers) < maxPeers {
				peers = append(peers, p)
			}
		}
	}
	return peers
}

// lastOf makes lines printable, and returns the last ones: at most so many bytes.
func lastOf(lines []string, most int) []string {
	size, first := 0, len(lines)
	for ; first > 0; first-- {
		line := Printable(lines[first-1])
		if size += len(line) + 1; size > most {
			break
		}
		lines[first-1] = line
	}
	return lines[first:]
}
