package main

import (
	"context"
	"errors"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/etcd"
)

// A node is an agent without workers.
type node struct {
	rendezvous *etcd.Rendezvous
	self       rendezvous.Node
	round      *rendezvous.Round // the newest; the simulation's, once it has been told of it
}

// An arrival is a node that is in a round, or will be in none any more.
type arrival struct {
	node  *node
	round *rendezvous.Round
	err   error
}

// run joins round after round until the job is closed.
func (n *node) run(arrivals chan<- arrival) {
	for {
		round, err := n.rendezvous.Join(context.Background(), n.self)
		arrivals <- arrival{n, round, err}
		if err != nil {
			return
		}
		<-round.Done()
		if !errors.Is(round.Err(), rendezvous.ErrNewRound) {
			arrivals <- arrival{n, nil, round.Err()}
			return
		}
	}
}

// kill ends the node without a word to etcd.
func (n *node) kill() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = n.rendezvous.Close(ctx, nil) // fails, since etcd cannot be told
}

// A noPort is a port that nobody needs.
type noPort struct{}

func (noPort) Number() int  { return 1 }
func (noPort) Close() error { return nil }

func reserve(string, int) (rendezvous.Port, error) { return noPort{}, nil }
