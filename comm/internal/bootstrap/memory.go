package bootstrap

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/comm/internal/transport/near"
)

// openAcceptor opens the acceptor of this rank and sets its address in me. It returns nil if ranks use TCP only, or if
// the kernel refuses an acceptor.
func (c *Config) openAcceptor(me *Info) (*acceptor.Acceptor, error) {
	if c.Transport == "tcp" {
		return nil, nil
	}
	_, err := machine.Here()
	var a *acceptor.Acceptor
	if err == nil {
		a, err = acceptor.Listen(c.token.Bytes(), c.Log)
	}
	if err != nil {
		return nil, OnFallback(c.Log, c.Transport == "shm")(err)
	}
	me.Acceptor = a.Address()
	return a, nil
}

// checkShared makes sure that all ranks may share memory.
func (w worldDoc) checkShared(me Info) error {
	for r, other := range w.Ranks {
		if other.Acceptor == "" || !other.SameNetwork(me.Place) {
			return fmt.Errorf("transport shm: rank %d on %s does not share memory with this one on %s", r, other.Host, me.Host)
		}
	}
	return nil
}

// OnFallback returns the function that is called if ranks of this machine cannot share memory. It returns an error if
// they must, and otherwise logs one line.
func OnFallback(log *slog.Logger, must bool) func(reason error) error {
	once := new(sync.Once)
	return func(reason error) error {
		if must {
			return fmt.Errorf("transport shm: no shared memory: %w", reason)
		}
		once.Do(func() { log.Warn("no shared memory: ranks of this machine talk over TCP", "reason", reason) })
		return nil
	}
}

// Nearby returns a transport through memory for ranks that can share it with this one, which uses tr for all others.
func Nearby(w *core.WorldConfig, id uint64, tr transport.Transport) transport.Transport {
	if w.Acceptor == nil {
		return tr
	}
	addresses := make([]string, len(w.Peers))
	for r, other := range w.Peers {
		if other.SameNetwork(w.Peers[w.Rank].Place) {
			addresses[r] = other.Acceptor
		}
	}
	return near.New(w.Acceptor, tr, near.Config{World: id, Rank: w.Rank, Peers: addresses, Token: w.Token, OnFallback: w.OnFallback})
}
