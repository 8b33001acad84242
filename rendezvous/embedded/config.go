package embedded

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/rendezvous"
)

// Heartbeats and elections, in milliseconds. A member that is alone sends no heartbeats, and waits for its first election only. Three have a
// network and busy machines between them.
var (
	alone   = timing{tick: 10, election: 50}
	several = timing{tick: 50, election: 500}
)

type timing struct{ tick, election uint }

const (
	quota      = 512 << 20 // bytes of data; the rounds of thousands of nodes are a few
	retention  = "5m"      // for which old revisions are kept
	walSegment = 1 << 20   // bytes by which the log grows; etcd's 64 MiB are what starting and stopping it would wait for
)

func init() { wal.SegmentSizeBytes = walSegment }

// Config says what to serve. Listeners, Self and Job must be set.
type Config struct {
	Listeners []net.Listener        // on TCP, with one port; the server closes them
	Self      rendezvous.Endpoint   // what the other nodes call this one
	Members   []rendezvous.Endpoint // all that host the rendezvous, 1 or 3 with Self, in any order; empty: Self alone
	Job       string                // servers of different jobs never become one cluster
	Dir       string                // has the data, for a server that comes back; empty: a temporary directory
	TempDir   string                // where that is made; empty: where the system has such
	Secret    []byte                // the same on every node, at least auth.MinSecret bytes; empty: none
	Files     *Files                // instead of Secret; nil: none
	Waiting   func(reason string)   // gets what Start waits for, again and again; must return at once; optional
	Logger    *slog.Logger          // nil: none
}

// Files are certificates that somebody else has made, as names of PEM files. Cert and Key are read again for every
// connection, CA only once.
type Files struct {
	CA   string // who it has signed may connect
	Cert string // this node's, for servers and clients, with the host of its endpoint
	Key  string
}

// check says what is wrong, and completes Members.
func (c *Config) check() error {
	if len(c.Listeners) == 0 || c.Job == "" {
		return errors.New("no listener, or no job")
	}
	if c.Members == nil {
		c.Members = []rendezvous.Endpoint{c.Self}
	}
	if len(c.Members) != 1 && len(c.Members) != 3 {
		return fmt.Errorf("%d endpoints: want one, or three of which any one may fail", len(c.Members))
	}
	if !slices.Contains(c.Members, c.Self) {
		return fmt.Errorf("endpoint %s is none of the rendezvous's", c.Self)
	}
	if c.several() {
		if err := c.checkPeers(); err != nil {
			return err
		}
	}
	if len(c.Secret) > 0 && c.Files != nil {
		return errors.New("both a token file and certificates: want only one of them")
	}
	if len(c.Secret) > 0 && len(c.Secret) < auth.MinSecret {
		return fmt.Errorf("the token has %d bytes: want at least %d", len(c.Secret), auth.MinSecret)
	}
	return c.checkExposed()
}

// checkPeers: the port above an endpoint's is for the other members.
func (c *Config) checkPeers() error {
	for _, m := range c.Members {
		peer := peerOf(m)
		if peer.Port > 65535 {
			return fmt.Errorf("endpoint %s: want a port below 65535, since the members of the cluster use the next port", m)
		}
		if slices.Contains(c.Members, peer) {
			return fmt.Errorf("endpoints %s and %s: want ports further apart, since the members of the cluster use the next port", m, peer)
		}
	}
	return nil
}

// checkExposed refuses to let the whole network start programs here.
func (c *Config) checkExposed() error {
	if c.secured() {
		return nil
	}
	for _, l := range c.Listeners {
		if a := addrOf(l); !a.Addr().IsLoopback() {
			return fmt.Errorf("refusing to serve the rendezvous on %s to everybody: give every node the same secret with --rdzv-token-file", a)
		}
	}
	return nil
}

func (c *Config) several() bool { return len(c.Members) > 1 }
func (c *Config) secured() bool { return len(c.Secret) > 0 || c.Files != nil }

// others are the endpoints but for this server's.
func (c *Config) others() []rendezvous.Endpoint {
	return slices.DeleteFunc(slices.Clone(c.Members), func(e rendezvous.Endpoint) bool { return e == c.Self })
}

// etcd is the configuration of the member. It opens no port: clients and members are served by [Server]. members are those of
// the cluster that it joins; nil: it has data, or it founds the cluster with all others.
func (c *Config) etcd(dir string, members []rendezvous.Endpoint) *embed.Config {
	e := embed.NewConfig()
	e.Name = c.Self.String()
	e.Dir = dir
	e.UnsafeNoFsync = c.Dir == ""
	e.InitialClusterToken = "gorun/" + c.Job
	e.QuotaBackendBytes = quota
	e.AutoCompactionMode, e.AutoCompactionRetention = embed.CompactorModePeriodic, retention
	e.EnableGRPCGateway = false
	e.ListenClientUrls = nil
	e.AdvertiseClientUrls = []url.URL{c.url(c.Self)}
	e.TickMs, e.ElectionMs = alone.tick, alone.election
	e.ListenPeerUrls = nil
	if c.several() {
		e.TickMs, e.ElectionMs = several.tick, several.election
	}
	e.AdvertisePeerUrls = []url.URL{c.url(peerOf(c.Self))}
	if members != nil {
		e.ClusterState = embed.ClusterStateFlagExisting
	} else {
		members = c.Members
	}
	peers := make([]string, len(members))
	for i, m := range members {
		peers[i] = m.String() + "=" + c.peerURL(m)
	}
	e.InitialCluster = strings.Join(peers, ",")
	return e
}

// url is an endpoint as etcd writes it.
func (c *Config) url(e rendezvous.Endpoint) url.URL {
	scheme := "http"
	if c.secured() {
		scheme = "https"
	}
	return url.URL{Scheme: scheme, Host: e.String()}
}

// peerURL is where the other members reach the one at an endpoint.
func (c *Config) peerURL(e rendezvous.Endpoint) string {
	u := c.url(peerOf(e))
	return u.String()
}

// tls is what etcd knows certificates as.
func (f *Files) tls() transport.TLSInfo {
	return transport.TLSInfo{
		CertFile: f.Cert, KeyFile: f.Key, TrustedCAFile: f.CA, ClientCertAuth: true,
		SkipClientSANVerify: true, // who the CA has signed may connect from anywhere
	}
}

// realm keeps certificates for the rendezvous apart from others of the same secret.
const realm = "rendezvous"

// ClientTLS lets a client in where servers have the same secret, and takes no other server for one of theirs. It is good
// for as long as the process lives.
func ClientTLS(secret []byte) (*tls.Config, error) {
	own, err := auth.NewIdentity(secret, realm)
	if err != nil {
		return nil, err
	}
	return own.ClientTLS(), nil
}

// serverTLS is for the clients of a server; nil: everybody.
func (c *Config) serverTLS(own *auth.Identity) (*tls.Config, error) {
	return c.tls(own, (*auth.Identity).ServerTLS, transport.TLSInfo.ServerConfig)
}

// clientTLS is for this server as a client of the others; nil: none.
func (c *Config) clientTLS(own *auth.Identity) (*tls.Config, error) {
	return c.tls(own, (*auth.Identity).ClientTLS, transport.TLSInfo.ClientConfig)
}

func (c *Config) tls(own *auth.Identity, ofSecret func(*auth.Identity) *tls.Config, ofFiles func(transport.TLSInfo) (*tls.Config, error)) (*tls.Config, error) {
	switch {
	case own != nil:
		return ofSecret(own), nil
	case c.Files != nil:
		return ofFiles(c.Files.tls())
	}
	return nil, nil
}

// identity is what a directory's data belongs to.
func (c *Config) identity() string {
	return fmt.Sprintf("job %s, endpoint %s of %s\n", strconv.Quote(c.Job), c.Self, c.endpoints())
}

// cluster is what all its servers call it.
func (c *Config) cluster() string {
	return fmt.Sprintf("job %s, endpoints %s", strconv.Quote(c.Job), c.endpoints())
}

func (c *Config) endpoints() string {
	members := make([]string, len(c.Members))
	for i, m := range c.Members {
		members[i] = m.String()
	}
	slices.Sort(members)
	return strings.Join(members, ",")
}

func peerOf(e rendezvous.Endpoint) rendezvous.Endpoint {
	return rendezvous.Endpoint{Host: e.Host, Port: e.Port + 1}
}

func addrOf(l net.Listener) netip.AddrPort {
	a, _ := netip.ParseAddrPort(l.Addr().String())
	return a
}
