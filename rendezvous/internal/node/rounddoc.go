package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// roundDoc is what rounds/<n>/<c> says: what is to be known of round n by its members whose keys begin with c. A node reads the
// one that it may be in, so that what it reads does not grow with the number of the others; a leader reads all.
type roundDoc struct {
	ID       int                   `json:"id"`
	Size     int                   `json:"size"` // nodes, in all documents of the round
	Token    string                `json:"token"`
	Restarts int                   `json:"restarts"`
	Cause    *death.Death          `json:"cause,omitempty"`
	Why      string                `json:"why,omitempty"`
	Gone     []rendezvous.GoneNode `json:"gone,omitempty"`
	Rank0    rank0Doc              `json:"head"`

	Assignments map[string]assignment `json:"seats,omitempty"` // by the members' keys
	Peers       []peerDoc             `json:"peers,omitempty"` // whom they call, beside that of rank 0

	// For the leader, what rendezvous.Formed says.
	Late   map[string]int    `json:"late,omitempty"`
	Losses []rendezvous.Loss `json:"losses,omitempty"` // in one of the documents
}

// A peerDoc is a node that others call.
type peerDoc struct {
	Key       string `json:"key"`
	Host      string `json:"host"`
	Addr      string `json:"addr"` // where others reach it
	AgentPort int    `json:"door"` // at which its agent answers the others
}

// A rank0Doc is the node that has rank 0.
type rank0Doc struct {
	peerDoc
	Port int `json:"port"` // of the master
}

func peerOf(c rendezvous.Candidate) peerDoc {
	return peerDoc{Key: c.Key, Host: c.Node.Host, Addr: c.Node.Reach(), AgentPort: c.AgentPort}
}

// An assignment is what a member has in the round.
type assignment struct {
	Rank  int              `json:"rank"`
	Try   int              `json:"try"`           // which Join has got it
	New   time.Duration    `json:"new,omitempty"` // for how long it is a newcomer
	ID    string           `json:"id"`
	Host  string           `json:"host"`
	Place rendezvous.Place `json:"place"`
}

// roundDocs are the documents of a round, by c.
func roundDocs(f *rendezvous.Formed, token string) map[string]*roundDoc {
	docs := make(map[string]*roundDoc)
	first := f.Members[0]
	at := func(key string) *roundDoc {
		c := initial(key)
		if docs[c] == nil {
			docs[c] = &roundDoc{
				ID: f.ID, Size: len(f.Members), Token: token, Restarts: f.Restarts, Cause: f.Cause, Why: f.Why, Gone: f.Gone,
				Rank0:       rank0Doc{peerOf(first), first.Port},
				Assignments: make(map[string]assignment), Late: make(map[string]int),
			}
		}
		return docs[c]
	}
	nodes := make([]rendezvous.Node, len(f.Members))
	for rank, m := range f.Members {
		nodes[rank] = m.Node
	}
	places := rendezvous.Assign(nodes)
	for rank, m := range f.Members {
		at(m.Key).Assignments[m.Key] = assignment{Rank: rank, Try: m.Try, New: f.New[m.Key], ID: m.Node.ID, Host: m.Node.Host, Place: places[rank]}
	}
	for key, try := range f.Late {
		at(key).Late[key] = try
	}
	at(first.Key).Losses = f.Losses
	peers := peersOf(f)
	for _, doc := range docs {
		doc.Peers = peers
	}
	return docs
}

// peersOf returns whom the members call: each other, if they are not too many, and nodes that were left out because they are apart
// from one of them.
func peersOf(f *rendezvous.Formed) (peers []peerDoc) {
	nodes := f.Apart[:min(len(f.Apart), rendezvous.PeersLimit)]
	if len(f.Members) <= rendezvous.PeersLimit {
		nodes = slices.Concat(f.Members, nodes)
	}
	for _, c := range nodes {
		peers = append(peers, peerOf(c))
	}
	return peers
}

func (d *roundDoc) check() error {
	if d.ID < 1 || d.Size < 1 || d.Size > nodesLimit || d.Rank0.Port < 1 || d.Rank0.Port > 65535 {
		return fmt.Errorf("round %d of %d nodes with port %d", d.ID, d.Size, d.Rank0.Port)
	}
	if len(d.Peers) > 2*rendezvous.PeersLimit {
		return fmt.Errorf("round %d of %d nodes, of which each calls %d", d.ID, d.Size, len(d.Peers))
	}
	for _, p := range append(slices.Clip(d.Peers), d.Rank0.peerDoc) {
		if err := checkTexts(p.Key, p.Host, p.Addr); err != nil {
			return err
		}
	}
	if err := checkGone(d.Gone); err != nil {
		return err
	}
	for key, s := range d.Assignments {
		if err := checkTexts(key, s.ID, s.Host); err != nil {
			return err
		}
		p := s.Place
		if s.Rank < 0 || s.Rank >= d.Size || p.FirstRank < 0 || p.FirstRank >= p.WorldSize || p.FirstRoleRank < 0 || p.FirstRoleRank >= p.RoleWorldSize {
			return fmt.Errorf("round %d of %d nodes with %s in %+v", d.ID, d.Size, key, s)
		}
	}
	return nil
}

// formed is the round that all of its documents make. Of its members there is what a leader has to remember: Key, Try, and ID, Host and
// Nproc of Node.
func formed(docs []roundDoc) (*rendezvous.Formed, error) {
	if len(docs) == 0 {
		return nil, errors.New("it is missing")
	}
	one := docs[0]
	f := &rendezvous.Formed{
		ID: one.ID, Restarts: one.Restarts, Cause: one.Cause, Why: one.Why,
		Members: make([]rendezvous.Candidate, one.Size), Late: make(map[string]int), New: make(map[string]time.Duration),
	}
	assigned := make(map[string]bool)
	places := make([]rendezvous.Place, one.Size)
	for _, d := range docs {
		for key, s := range d.Assignments {
			if assigned[key] {
				return nil, fmt.Errorf("round %d has two ranks for %s", one.ID, key)
			}
			assigned[key] = true
			if s.New > 0 {
				f.New[key] = s.New
			}
			if s.Rank < one.Size {
				f.Members[s.Rank] = rendezvous.Candidate{Key: key, Try: s.Try, Node: rendezvous.Node{ID: s.ID, Host: s.Host}}
				places[s.Rank] = s.Place
			}
		}
		maps.Copy(f.Late, d.Late)
		f.Losses = append(f.Losses, d.Losses...)
	}
	for rank, p := range places {
		if f.Members[rank].Key == "" {
			return nil, fmt.Errorf("round %d of %d nodes has none of rank %d", one.ID, one.Size, rank)
		}
		next := p.WorldSize
		if rank+1 < one.Size {
			next = places[rank+1].FirstRank
		}
		f.Members[rank].Node.Nproc = next - p.FirstRank
	}
	return f, nil
}
