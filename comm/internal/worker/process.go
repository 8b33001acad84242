// Package worker is the worker's side of gorun: it opens and closes the worlds of a process, from one round to the
// next, and tells the agent of the process what it wants to know.
//
//   - process.go: what a process keeps from one world to the next
//   - config.go: how it joins a world
//   - join.go: joins a world
//   - next.go: ends a round, and joins the world of the next one
//   - world.go: a world, its groups, and its end
//   - death.go: what the agent says of ranks that have died
//   - memory.go: memory of comm.Alloc outlives its world
//   - progress.go, status.go: what the agent learns of progress, and the answers to its questions
//   - errorfile.go, flights.go: files that say why a process has failed
//   - quit.go: SIGQUIT prints the flight recorders
package worker

import (
	"slices"
	"sync"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/membership"
	"github.com/gorun/gorun/comm/internal/shm/heap"
)

// A Process is what a process keeps from one world to the next.
type Process struct {
	flight func(*core.Group) any // what users see of a group's flight recorder: JSON can encode it

	mu        sync.Mutex
	rounds    *membership.Membership // nil: this process cannot rejoin
	rejoining bool
	set       func(*Config) // the settings of the last Init of a world of the round, which Rejoin uses again
	worlds    []*World      // those that are open, in the order in which they were opened
	failure   error         // the last failure of a call on this round's worlds, or of joining them; nil: there was none
	other     error         // the last failure of a call on other worlds, or of joining them; nil: there was none

	memory   heap.Detached // memory of Alloc from worlds that the next round has closed; the next world adopts it
	attached []core.Peer   // processes that may have attached that memory
	rest     heap.Detached // memory of worlds that the program has closed: nobody uses it when the next round begins, and no world adopts it
	unfreed  heap.Detached // the same of worlds with CheckBuffers: the program uses it until it frees it

	progress, quit users
	flights        flightFile
}

// New returns the Process of a program that has not joined a world.
func New(flight func(*core.Group) any) *Process {
	return &Process{flight: flight, rest: heap.Detached{Discards: true}, unfreed: heap.Detached{UntilFreed: true}}
}

// Note records err, the failure of a call on a world, or of joining one. ofRound says that the world is one of the round.
func (p *Process) Note(err error, ofRound bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ofRound {
		p.failure = err
	} else {
		p.other = err
	}
}

// Failed returns the last failure on a world that is not one of the round; nil: there was none.
func (p *Process) Failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.other
}

// Groups returns all groups that are open.
func (p *Process) Groups() (all []*core.Group) {
	for _, w := range p.open() {
		all = append(all, w.Groups()...)
	}
	return all
}

// World returns the world that questions are about which name none: that of the round, or else the one that has been
// open for longest; nil: none is open.
func (p *Process) World() *World {
	worlds := p.open()
	if i := slices.IndexFunc(worlds, func(w *World) bool { return w.round != nil }); i >= 0 {
		return worlds[i]
	}
	if len(worlds) > 0 {
		return worlds[0]
	}
	return nil
}

func (p *Process) open() []*World {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.worlds)
}

// ofRound returns the open worlds of the round. There is more than one if Init has been called again.
func (p *Process) ofRound() []*World {
	return slices.DeleteFunc(p.open(), func(w *World) bool { return w.round == nil })
}

// membership returns nil if this process cannot rejoin.
func (p *Process) membership() *membership.Membership {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rounds
}

// users are the open worlds that need something of which a process has one.
type users struct {
	mu    sync.Mutex
	count int
	end   func()
}

// enter calls begin for the first user, and what that returns when the last one has called leave.
func (u *users) enter(begin func() (end func())) (leave func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count++; u.count == 1 {
		u.end = begin()
	}
	return sync.OnceFunc(u.leave)
}

func (u *users) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count--; u.count == 0 {
		u.end()
	}
}
