package core

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/endpoint"
)

// A Backend carries out collectives of a group.
//
// A group has the backend messages, which carries out every call, and usually another one, which is faster and takes
// most of them: self if it has one member, memory if all members share memory, stages if some do. A new one, such as one
// for GPUs, is made in attach, and takes what it can. (A new network is a transport, so that messages use it, too.)
type Backend interface {
	endpoint.Backend // its methods concern what Run waits for, and does
	// Takes reports whether Run carries out calls like c. It is the same on all members.
	Takes(c *Collective) bool
	// Run carries out c, whose turn has come. If it returns an error, the group fails with it. Only one goroutine at a
	// time calls Takes and Run; any goroutine may call the other methods.
	Run(c *Collective) error
	// Abandon ends the call that Run has returned an error for, or has not returned from: the caller's code has panicked.
	// The group has failed.
	Abandon()
	// Compare returns an error if another member has made other calls, as far as that is known here. No call is under way.
	Compare() error
	// Close releases the backend's memory. No call is under way, and none follows.
	Close()
}

// use makes b a backend of the group, after those that it has, and before messages.
func (g *Group) use(b Backend) {
	all := append(slices.Clone(g.others()), b)
	g.backends.Store(&all)
	g.Comm.Attach(b)
}

// others returns the group's backends but for messages.
func (g *Group) others() []Backend {
	if all := g.backends.Load(); all != nil {
		return *all
	}
	return nil
}

// backend returns the first backend that takes c, whose turn has come.
func (g *Group) backend(c *Collective) Backend {
	for _, b := range g.others() {
		if b.Takes(c) {
			return b
		}
	}
	return &g.messages
}
