package rendezvous

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A GoneNode is a member of a round that the job goes on without: it is lost, it has left, or others cannot reach it. Its workers may
// still run, but they are in no later round, unless the node comes back.
type GoneNode struct {
	ID        string `json:"id"` // Node.ID
	Host      string `json:"host"`
	FirstRank int    `json:"first_rank"` // of its workers
	Nproc     int    `json:"nproc"`
	Why       string `json:"why"` // one line: "node-b is lost"
}

// goneLimit is how many of the nodes that are gone are named.
const goneLimit = 256

// Check returns an error if no round can have had these ranks.
func (g GoneNode) Check() error {
	if g.FirstRank < 0 || g.Nproc < 1 || g.FirstRank+g.Nproc > WorldLimit {
		return fmt.Errorf("node %.40q had the ranks from %d, %d of them: want at most %d", g.ID, g.FirstRank, g.Nproc, WorldLimit)
	}
	return nil
}

// oneLine returns the first part of a text that may be long, as one line of at most nameLimit bytes.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), nameLimit)], "")
}

// goneFrom returns the members of the last round that do not stay, and have not done their work.
func (s *State) goneFrom(stays func(Candidate) bool) (gone []GoneNode) {
	first := 0
	for _, m := range s.Last.Members {
		if len(gone) == goneLimit {
			return gone
		}
		if !s.succeeded[m.Key] && !stays(m) {
			gone = append(gone, GoneNode{ID: m.Node.ID, Host: m.Node.Host, FirstRank: first, Nproc: m.Node.Nproc, Why: oneLine(s.whyGone(m))})
		}
		first += m.Node.Nproc
	}
	return gone
}

// stays returns which members are not gone when the round is over.
func (s *State) stays(over *Ending) func(Candidate) bool {
	return func(m Candidate) bool { return !s.isGone(m) && !slices.Contains(over.Apart, m.Key) }
}

func (s *State) whyGone(m Candidate) string {
	left := s.left(m)
	_, found := s.here[m.Key]
	switch {
	case left != nil:
		return m.name() + " has left" + because(left)
	case s.leaving[m.Key]:
		return m.name() + " is leaving"
	case found:
		return m.name() + " is left out"
	default:
		return m.name() + " is lost"
	}
}
