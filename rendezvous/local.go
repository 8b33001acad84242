package rendezvous

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// A Port is a reserved TCP port: nothing else gets it by chance until Close.
type Port interface {
	Number() int
	Close() error
}

// A ReserveFunc reserves a port of this machine on host ("" is every address); port 0 asks for any free one.
type ReserveFunc func(host string, port int) (Port, error)

// LocalConfig is what Local needs. Reserve must be set.
type LocalConfig struct {
	// Master is the address and port to announce. Empty: 127.0.0.1, and a fresh port every round.
	Master Master
	// Reserve holds the master port.
	Reserve ReserveFunc
	// Host serves a store for a round whose workers know token. nil: rank 0 serves it.
	Host func(token string) (addr string, store io.Closer, err error)
	// MaxRestarts is the job's budget.
	MaxRestarts int
}

// Local is the rendezvous of a job on one node: every Join is a new round of this node alone, with a token of
// 256 random bits.
type Local struct {
	config LocalConfig
	rounds series
}

// NewLocal returns the rendezvous of one node.
func NewLocal(config LocalConfig) *Local {
	if config.Master.Addr == "" {
		config.Master.Addr = "127.0.0.1"
	}
	return &Local{config: config, rounds: series{maxRestarts: config.MaxRestarts}}
}

// Join forms the next round at once.
func (l *Local) Join(ctx context.Context, self Node) (*Round, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := self.Check(); err != nil {
		return nil, &MisuseError{Err: err}
	}
	return l.rounds.next(func() (Round, io.Closer, io.Closer, error) { return l.form(self) })
}

// Report decides at once what follows. It does not fail.
func (l *Local) Report(_ context.Context, round *Round, failure *Failure) error {
	l.rounds.report(round, failure)
	return nil
}

// Leave has nobody to tell.
func (l *Local) Leave(context.Context, *Round, error) error { return nil }

// Close ends the job. Its error is that of a port or a store which would not close.
func (l *Local) Close(_ context.Context, why error) error { return l.rounds.close(why) }

func (l *Local) form(self Node) (r Round, port, store io.Closer, err error) {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	r = Round{Size: 1, Node: self, Place: Assign([]Node{self})[0], Master: l.config.Master, Token: hex.EncodeToString(secret)}
	p, err := r.Master.Reserve(l.config.Reserve)
	if err != nil {
		return Round{}, nil, nil, err
	}
	r.Master.Port = p.Number()
	if l.config.Host != nil {
		if r.StoreAddr, store, err = l.config.Host(r.Token); err != nil {
			err = fmt.Errorf("serving the store of the round: %w", err)
			return Round{}, nil, nil, errors.Join(err, p.Close())
		}
	}
	return r, p, store, nil
}
