package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
)

const diagnosis = 3 * time.Second // takes no longer

// A Target is an etcd, and what is needed to be let in.
type Target struct {
	Endpoints          []rendezvous.Endpoint // of its members
	Hosted             bool                  // by nodes of the job, and not running by itself
	Looks              bool                  // the user looks for a job, and starts no node of it
	TLS                *tls.Config           // nil: none
	Username, Password string                // empty: none
}

// advise returns what to do about an etcd that a node hosts, or about one that runs by itself.
func (t Target) advise(hosted, alone string) string {
	if t.Hosted {
		return hosted
	}
	return alone
}

// Diagnose returns nil if a member of an etcd answers that has a leader. Otherwise it returns after three seconds at most
// with a *Problem for each endpoint, one line each.
func Diagnose(ctx context.Context, t Target) error {
	ctx, cancel := context.WithTimeout(ctx, diagnosis)
	defer cancel()
	problems := make([]error, len(t.Endpoints))
	var all sync.WaitGroup
	for i, e := range t.Endpoints {
		all.Go(func() {
			p := t.diagnose(ctx, e)
			if p == nil {
				cancel() // the others do not matter
				return
			}
			p.Endpoint = e
			problems[i] = p
		})
	}
	all.Wait()
	if slices.Contains(problems, nil) {
		return nil
	}
	return errors.Join(problems...)
}

// diagnose goes from the name to the etcd, until something is wrong.
func (t Target) diagnose(ctx context.Context, e rendezvous.Endpoint) *Problem {
	conn, problem := t.dial(ctx, e)
	if problem != nil {
		return problem
	}
	longest := mtu(conn)
	reply, said, err := greet(ctx, conn, e.Host, t.TLS)
	switch reply {
	case saysHTTP2:
		return t.ask(ctx, e)
	case saysOther:
		return t.stranger(said)
	case distrusted:
		return &Problem{Kind: Credentials, Err: fmt.Errorf("its certificate is not trusted (%w): %s", cause(err),
			t.advise("give every node the same --rdzv-token-file, or ca_cert= in --rdzv-conf", "correct ca_cert= in --rdzv-conf, the certificate of its authority"))}
	case distrusts:
		return &Problem{Kind: Credentials, Err: fmt.Errorf("it does not accept this node's certificate (%w): %s", cause(err),
			t.advise("give every node the same --rdzv-token-file, or certificates of one authority",
				"give ssl_cert= and ssl_cert_key= in --rdzv-conf, which its authority has signed"))}
	case saysNothing:
		if t.Hosted && t.TLS != nil {
			return silent(longest) // most likely one that is starting, whose log should not say that it has turned away a stranger
		}
	case hangsUp, noTLS:
	}
	return t.otherwise(ctx, e, reply, longest)
}

// otherwise greets again, without TLS where a greeting with it was not understood, or the reverse. first is how the first
// one was answered, and longest is the MTU there.
func (t Target) otherwise(ctx context.Context, e rendezvous.Endpoint, first reply, longest int) *Problem {
	conn, problem := t.dial(ctx, e)
	if problem != nil {
		return problem
	}
	var other *tls.Config
	if t.TLS == nil {
		other = &tls.Config{InsecureSkipVerify: true} // nothing secret is sent
	}
	second, said, _ := greet(ctx, conn, e.Host, other)
	switch {
	case other == nil && second == saysHTTP2:
		return &Problem{Kind: Credentials, Err: errors.New("it was started without TLS: " +
			t.advise("give every node the same --rdzv-token-file or certificates, or none", "leave protocol=https and certificates out of --rdzv-conf"))}
	case other != nil && (second == saysHTTP2 || second == saysOther || second == distrusts):
		return &Problem{Kind: Credentials, Err: errors.New("it requires TLS: " +
			t.advise("give this node the --rdzv-token-file of the others, or certificates", "give the --rdzv-token-file of gorun etcd; for another etcd ca_cert= in --rdzv-conf, or protocol=https if this machine knows its authority"))}
	case second == saysOther:
		return t.stranger(said)
	case first == saysNothing:
		return silent(longest)
	}
	return &Problem{Kind: HangsUp, Err: errors.New("it accepts connections and closes them: it is an etcd that is starting or ending, or another service")}
}

// silent is for one that says nothing. longest is the MTU of the connection; 0: it is not known. What an etcd says first with TLS, its certificates,
// is in long packets: if these are lost, so is all that it says.
func silent(longest int) *Problem {
	text := "it accepts connections but sends nothing: it is an etcd that waits for its other members to start, or another service"
	if longest > ethernetMTU && longest <= jumboMTU {
		text += fmt.Sprintf("; or a switch on the way drops long packets: this machine sends up to %d bytes (ip link set mtu %d would rule that out)", longest, ethernetMTU)
	}
	return &Problem{Kind: Silent, Err: errors.New(text)}
}

// The usual MTU of Ethernet, and the longest of its jumbo frames. Loopback has a longer one, and drops nothing.
const (
	ethernetMTU = 1500
	jumboMTU    = 16 << 10
)

// stranger is for one that speaks another language.
func (t Target) stranger(said []byte) *Problem {
	return &Problem{Kind: Stranger, Err: fmt.Errorf("another service listens there (it says %q): %s", said, t.elsewhere())}
}

// elsewhere is what to do where no etcd is.
func (t Target) elsewhere() string {
	if t.Looks {
		return "correct the endpoint"
	}
	return t.advise("choose another port", "correct the endpoint")
}

// dial connects, or says why not.
func (t Target) dial(ctx context.Context, e rendezvous.Endpoint) (net.Conn, *Problem) {
	conn, err := network.DialTCP(ctx, e.String())
	if err == nil {
		return conn, nil
	}
	var dns *net.DNSError
	var timeout net.Error
	noLoopback := network.NoLoopback(e.Host, err)
	switch {
	case noLoopback != nil:
		return nil, &Problem{Kind: NoLoopback, Err: noLoopback}
	case errors.As(err, &dns) && !canOpen():
		return nil, &Problem{Kind: Exhausted, Err: errors.New("this node cannot look up the name: allow more open files (ulimit -n)")}
	case errors.As(err, &dns) && dns.IsNotFound:
		return nil, &Problem{Kind: NoSuchHost, Err: errors.New("no such host: correct the name, or give an IP address")}
	case errors.As(err, &dns):
		return nil, &Problem{Kind: NoSuchHost, Err: fmt.Errorf("the name cannot be looked up (%s): give an IP address, or check the name servers", dns.Err)}
	case errors.Is(err, syscall.ECONNREFUSED) && t.Hosted && t.Looks:
		return nil, &Problem{Kind: Refused, Err: errors.New("connection refused: no job runs there, or the port differs")}
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, &Problem{Kind: Refused, Err: errors.New("connection refused: nothing listens there; " +
			t.advise("start gorun on that node, or correct the port", "start etcd, or correct the endpoint"))}
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return nil, &Problem{Kind: Exhausted, Err: fmt.Errorf("this node cannot connect to it (%w): allow more open files (ulimit -n)", cause(err))}
	case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, &Problem{Kind: Exhausted, Err: fmt.Errorf("this node cannot connect to it (%w): this machine has no memory or ports left for a connection", cause(err))}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return nil, &Problem{Kind: Unreachable, Err: errors.New("no answer: that machine is down, or a firewall blocks the connection")}
	}
	return nil, &Problem{Kind: Unreachable, Err: fmt.Errorf("it cannot be reached from here (%w): correct the address, or check the network", cause(err))}
}

// canOpen reports whether there are descriptors left. Without one, a name that cannot be looked up seems to mean nothing.
func canOpen() bool {
	f, err := os.Open(os.DevNull)
	if err == nil {
		_ = f.Close()
	}
	return !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE)
}

// cause leaves out what was being done, and with whom.
func cause(err error) error {
	var op *net.OpError
	var untrusted *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return errors.New("signed by an authority that this node does not know")
	case errors.As(err, &untrusted):
		return untrusted.Err
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

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
	NoLoopback                  // this machine cannot reach itself
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

// Is reports whether target is rendezvous.ErrCredentials, and this is a problem with credentials.
func (p *Problem) Is(target error) bool {
	return target == rendezvous.ErrCredentials && p.Kind == Credentials
}

// Lasting reports that waiting does not help: somebody has to correct something. The others may be nodes that have not
// started yet.
func (p *Problem) Lasting() bool {
	return slices.Contains([]Kind{Stranger, Credentials, Login, NoLoopback}, p.Kind)
}
