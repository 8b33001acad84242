package rendezvous

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"

	"github.com/gorun/gorun/rendezvous/internal/liveness"
)

// A Config describes a rendezvous over etcd.
type Config struct {
	Access
	Rules
	RunID       string
	Prefix      string            // of etcd's keys, with a slash at its end; empty: gorun's own
	TempDir     string            // for data of this process; it is removed when this process ends
	MasterPort  int               // 0: any
	EndAsOthers bool              // a node that is started after the job has ended ends as the job did; otherwise that is an error
	Settings    map[string]string // more of what must be the same on every node
	Token       TokenFunc         // gets the Secret of Access, before it is needed first; nil: it is known
	Successive  bool              // a manager may start one job of this name after the other, and the etcd of the last one may still end
	Reserve     ReserveFunc
	Waiting     func(reason string) // gets what a node waits for
	Scaled      func(need int)      // gets how many nodes the job needs, whenever this node is in its round and learns that it has changed; nil: nobody asks
	Control     func(net.Conn)      // takes connections of people who hold the job's secret; nil: there are none
	ExitCode    func(error) int     // of this node, which leaves for that reason
	Logger      *slog.Logger
}

// A TokenFunc gets a secret that the other nodes have or get as well. What is returned with it is closed last of all; nil: nothing is.
type TokenFunc func(context.Context) (secret string, giver io.Closer, err error)

// An Access says where an etcd is, and how to connect to it.
type Access struct {
	Looks              bool  // the user looks for a job, and starts no node of it
	Hosted             bool  // by the node that owns an endpoint; otherwise it runs by itself
	Hosts              *bool // whether this node is to host it; nil: if it owns an endpoint
	Endpoints          []Endpoint
	Secret             string // of all who know the etcd that gorun hosts; empty: none
	TLS                bool
	CA, Cert, Key      string // PEM files; empty: none
	User, PasswordFile string // empty: none
}

// Contacts are the agents of a job, for people who have something to say to them.
type Contacts struct {
	Secret []byte // of the job's agents
	Agents []Contact
}

// A Contact is an agent of a job.
type Contact struct {
	Key  string // to which it answers
	Node Node
	Addr string // host:port, where it answers
}

// Dial connects to one of the agents, as somebody who has something to say to it. All that is said is encrypted.
func (c Contacts) Dial(ctx context.Context, to Contact) (net.Conn, error) {
	return liveness.Dial(ctx, c.Secret, to.Key, to.Addr)
}

// A NoJobError says that there is no job of this name.
type NoJobError struct {
	RunID string
	Jobs  []string // that there are, the first ones if they are very many
}

// Error is one line.
func (e *NoJobError) Error() string {
	switch {
	case len(e.Jobs) == 0:
		return fmt.Sprintf("no job %q runs there, and no other", e.RunID)
	case slices.Contains(e.Jobs, e.RunID):
		return fmt.Sprintf("job %q has no nodes there: it has just begun, or is ending", e.RunID)
	}
	return fmt.Sprintf("no job %q runs there, only: %s", e.RunID, strings.Join(e.Jobs, ", "))
}
