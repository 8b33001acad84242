package comm

import (
	"fmt"
	"sync"

	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/shm"
	"github.com/gorun/gorun/comm/transport"
	"github.com/gorun/gorun/comm/transport/near"
)

// openDesk opens a desk for this rank, and lets me tell of it, unless ranks are to do without or it cannot be had.
func (c *config) openDesk(me *rankInfo) (*shm.Desk, error) {
	if c.transport == "tcp" {
		return nil, nil
	}
	_, err := machine.Here()
	var desk *shm.Desk
	if err == nil {
		desk, err = shm.OpenDesk(c.token.Bytes(), c.log)
	}
	switch {
	case err == nil:
		me.Desk = desk.Address()
	case c.transport == "shm":
		return nil, fmt.Errorf("transport shm: no shared memory: %w", err)
	default:
		c.log.Warn("no shared memory: ranks of this machine talk over TCP", "reason", err)
	}
	return desk, nil
}

// checkShared makes sure that all ranks may share memory.
func (w worldDoc) checkShared(me rankInfo) error {
	for r, other := range w.Ranks {
		if other.Desk == "" || !other.SameNetwork(me.Place) {
			return fmt.Errorf("transport shm: rank %d on %s does not share memory with this one on %s", r, other.Host, me.Host)
		}
	}
	return nil
}

// doWithout returns what tells, once, that ranks of this machine cannot share memory, and whether they may do without.
func (c *config) doWithout() func(problem error) error {
	log, must, once := c.log, c.transport == "shm", new(sync.Once)
	return func(problem error) error {
		if must {
			return fmt.Errorf("transport shm: no shared memory: %w", problem)
		}
		once.Do(func() { log.Warn("no shared memory: ranks of this machine talk over TCP", "reason", problem) })
		return nil
	}
}

// nearby is tr for ranks of other machines, and a transport through memory for those of this one that can share it.
func (c *config) nearby(tr transport.Transport, desk *shm.Desk, world uint64, rank int, info []rankInfo) transport.Transport {
	if desk == nil {
		return tr
	}
	desks := make([]string, len(info))
	for r, other := range info {
		if other.SameNetwork(info[rank].Place) {
			desks[r] = other.Desk
		}
	}
	return near.New(desk, tr, near.Config{World: world, Rank: rank, Peers: desks, Token: c.token.Bytes(), Without: c.without})
}
