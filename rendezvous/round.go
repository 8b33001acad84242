package rendezvous

import (
	"io"
	"sync"

	"github.com/gorun/gorun/env/death"
)

// A Round is a fixed membership: while it lasts, all its members have the same nodes in the same order, the
// same master and the same token. Its fields must not be changed.
type Round struct {
	ID        int   // from 1 upward
	Size      int   // nodes
	Self      int   // number of this node among them, from 0
	Node      Node  // this one
	Place     Place // of its workers
	Master    Master
	Token     string       // secret by which the workers of the round know each other; empty: none
	StoreAddr string       // host:port of a store that the agent serves for this round; empty: none
	Restarts  int          // of the job's budget, used before this round
	Cause     *death.Death // because of which this round follows another; nil: there is another reason, or it is the first
	Why       string       // that reason, or what else there is to say of it; empty, as is Cause: it is the first
	Gone      []GoneNode   // members of that other which are not in this round, the first ones if they are very many; not those that have succeeded

	started func()
	done    chan struct{} // closed when the round is over; err is set before
	err     error
}

// Because says in words why this round follows another; empty: it is the first.
func (r *Round) Because() string { return Because(r.Cause, r.Why) }

// Because puts the reason for a round into words (see Round).
func Because(cause *death.Death, why string) string {
	if cause == nil {
		return why
	}
	return cause.Describe() + "; " + why
}

// Done is closed when the round is over. A silent network does not end a round; only evidence does.
func (r *Round) Done() <-chan struct{} { return r.done }

// Err says why the round is over (ErrNewRound, a *NewRoundError, ErrClosed, ...), and is nil before Done is closed.
func (r *Round) Err() error {
	select {
	case <-r.done:
		return r.err
	default:
		return nil
	}
}

// Started says that this node's workers have been started, so that the master port is no longer held for them.
// It is idempotent, and implied by the end of the round.
func (r *Round) Started() { r.started() }

// Begin makes a round from r's fields, for implementations of Rendezvous. port may be nil; Started closes it. The
// returned function ends the round, once, and reports whether closing the port failed.
func Begin(r Round, port io.Closer) (round *Round, end func(why error) error) {
	release := sync.OnceValue(func() error {
		if port == nil {
			return nil
		}
		return port.Close()
	})
	r.started, r.done = func() { _ = release() }, make(chan struct{})
	round = &r
	var once sync.Once
	return round, func(why error) error {
		err := release()
		once.Do(func() {
			round.err = why
			close(round.done)
		})
		return err
	}
}

// A Place is a node's place in a round: its workers have the ranks FirstRank to FirstRank+Nproc-1 in the
// world, and FirstRoleRank to FirstRoleRank+Nproc-1 among the workers of its role.
type Place struct {
	FirstRank     int `json:"first"`
	WorldSize     int `json:"world"`
	FirstRoleRank int `json:"role_first"`
	RoleWorldSize int `json:"role_world"`
}

// Assign numbers the workers of nodes, which must be in rank order, and returns a place for each node. Ranks
// count through all nodes; role ranks count through the nodes of one role, in the same order. Nodes may differ
// in Nproc and Role.
func Assign(nodes []Node) []Place {
	places := make([]Place, len(nodes))
	world := 0
	roles := make(map[string]int)
	for i, n := range nodes {
		places[i].FirstRank = world
		places[i].FirstRoleRank = roles[n.Role]
		world += n.Nproc
		roles[n.Role] += n.Nproc
	}
	for i, n := range nodes {
		places[i].WorldSize = world
		places[i].RoleWorldSize = roles[n.Role]
	}
	return places
}
