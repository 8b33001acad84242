package job

import (
	"context"
	"io"
	"testing"

	"github.com/gorun/gorun/rendezvous"
)

// An askedEtcd keeps what it has been asked.
type askedEtcd struct {
	Etcd
	joins, asks rendezvous.Config
}

func (e *askedEtcd) Rendezvous(c rendezvous.Config) rendezvous.Rendezvous {
	e.joins = c
	return nil
}

func (e *askedEtcd) Contacts(_ context.Context, c rendezvous.Config) (rendezvous.Contacts, error) {
	e.asks = c
	return rendezvous.Contacts{}, nil
}

// TestPageHasTheToken: the page asks for the other nodes with the secret of the job, also if nodes get that when they meet, as by MUNGE.
func TestPageHasTheToken(t *testing.T) {
	for _, later := range []bool{false, true} {
		asked := new(askedEtcd)
		met := &etcdMemory{Etcd: asked}
		c := rendezvous.Config{RunID: "job", Access: rendezvous.Access{Secret: "secret"}}
		if later {
			c.Secret = ""
			c.Token = func(context.Context) (string, io.Closer, error) { return "secret", nil, nil }
		}
		met.Rendezvous(c)
		if later {
			if _, err := met.contacts(t.Context()); err == nil {
				t.Error("it asks before the nodes have a secret")
			}
			if secret, _, err := asked.joins.Token(t.Context()); secret != "secret" || err != nil {
				t.Errorf("the nodes get %q, %v", secret, err)
			}
		}
		if _, err := met.contacts(t.Context()); err != nil || asked.asks.Secret != "secret" || asked.asks.RunID != "job" {
			t.Errorf("later: %v: it asks with %+v, %v", later, asked.asks, err)
		}
	}
}
