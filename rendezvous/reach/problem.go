package reach

import (
	"fmt"

	"github.com/gorun/gorun/rendezvous"
)

// A Kind is what is wrong with an endpoint, by what would help.
type Kind int

// Kinds of problem.
const (
	NoSuchHost  Kind = iota + 1 // the name means nothing here
	Refused                     // nothing listens there
	Unreachable                 // the machine does not answer
	Silent                      // who listens says nothing
	Stranger                    // who listens is no etcd
	Credentials                 // one side does not believe the other, or only one of them uses TLS
	Login                       // etcd wants another user name or password
	NoLeader                    // etcd's members are too few
	Failing                     // who listens is an etcd, and cannot answer now
	HangsUp                     // who listens takes connections and ends them
	Exhausted                   // this machine has no room for a connection
)

// A Problem is why an endpoint cannot be used.
type Problem struct {
	Endpoint rendezvous.Endpoint
	Kind     Kind
	Err      error // what it is, and what to do
}

// Error is one line.
func (p *Problem) Error() string { return fmt.Sprintf("%s: %v", p.Endpoint, p.Err) }

// Unwrap gives what it is.
func (p *Problem) Unwrap() error { return p.Err }

// Lasting reports that waiting does not help: somebody has to correct something. The others may be nodes that have not
// started yet.
func (p *Problem) Lasting() bool {
	switch p.Kind {
	case Stranger, Credentials, Login:
		return true
	default:
		return false
	}
}
