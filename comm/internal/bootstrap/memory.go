package bootstrap

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/transport"
	"github.com/gorun/gorun/comm/transport/near"
)

// openDesk opens a desk for this rank, and lets me tell of it, unless ranks are to do without or it cannot be had.
func (c *Config) openDesk(me *Info) (*acceptor.Acceptor, error) {
	if c.Transport == "tcp" {
		return nil, nil
	}
	_, err := machine.Here()
	var desk *acceptor.Acceptor
	if err == nil {
		desk, err = acceptor.Listen(c.token.Bytes(), c.Log)
	}
	switch {
	case err == nil:
		me.Desk = desk.Address()
	case c.Transport == "shm":
		return nil, fmt.Errorf("transport shm: no shared memory: %w", err)
	default:
		c.Log.Warn("no shared memory: ranks of this machine talk over TCP", "reason", err)
	}
	return desk, nil
}

// checkShared makes sure that all ranks may share memory.
func (w worldDoc) checkShared(me Info) error {
	for r, other := range w.Ranks {
		if other.Desk == "" || !other.SameNetwork(me.Place) {
			return fmt.Errorf("transport shm: rank %d on %s does not share memory with this one on %s", r, other.Host, me.Host)
		}
	}
	return nil
}

// Without returns what is told that ranks of this machine cannot share memory: it is an error if they must, else one line of the log.
func Without(log *slog.Logger, must bool) func(problem error) error {
	once := new(sync.Once)
	return func(problem error) error {
		if must {
			return fmt.Errorf("transport shm: no shared memory: %w", problem)
		}
		once.Do(func() { log.Warn("no shared memory: ranks of this machine talk over TCP", "reason", problem) })
		return nil
	}
}

// Nearby is tr for ranks of other machines, and a transport through memory for those of this one that can share it.
func Nearby(w *core.WorldConfig, id uint64, tr transport.Transport) transport.Transport {
	if w.Desk == nil {
		return tr
	}
	desks := make([]string, len(w.Peers))
	for r, other := range w.Peers {
		if other.SameNetwork(w.Peers[w.Rank].Place) {
			desks[r] = other.Desk
		}
	}
	return near.New(w.Desk, tr, near.Config{World: id, Rank: w.Rank, Peers: desks, Token: w.Token, Without: w.Without})
}
