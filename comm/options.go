package comm

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/transport/tcp"
)

// DefaultTimeout is the limit of one operation, and of Init, unless [WithTimeout] says otherwise.
const DefaultTimeout = 30 * time.Minute

// An Option changes how [Init] joins, or what [NewGroup] makes.
type Option func(*config)

type config struct {
	bootstrap.Config
	chunkSize     int           // how many bytes of a message of a plan travel at once; 0: plan.ChunkSize
	notifyTimeout time.Duration // see endpoint.Options.News
	tuning        string        // in the words of WithTuning; Tuning is what it means
	connections   string        // of a stream: a number, or auto; empty: auto

	codec        Codec
	objectLimit  int
	flightOnQuit bool
}

func newConfig(opts []Option) config {
	c := config{
		Config: bootstrap.Config{
			Method: "env://", Timeout: DefaultTimeout, Transport: bootstrap.Auto, Token: os.Getenv("GORUN_TOKEN"),
			Address: os.Getenv("GORUN_COMM_ADDR"), TLS: os.Getenv("GORUN_TLS") == "True", Log: slog.Default(),
		},
		notifyTimeout: core.NotifyTimeout, tuning: os.Getenv("GORUN_COMM_TUNE"), connections: os.Getenv("GORUN_COMM_CONNECTIONS"), flightOnQuit: true,
	}
	for _, o := range opts {
		o(&c)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// check refuses settings that make no sense for any group, and reads those that are text.
func (c *config) check() (err error) {
	if c.Tuning, err = core.ParseTuning(c.tuning); err != nil {
		return err
	}
	if c.connections != "" && c.connections != bootstrap.Auto {
		c.Connections, err = strconv.Atoi(c.connections)
		if err != nil || c.Connections < 1 || c.Connections > tcp.MostConnections {
			return fmt.Errorf("%q connections: want auto or 1 to %d (GORUN_COMM_CONNECTIONS)", c.connections, tcp.MostConnections)
		}
	}
	switch {
	case c.Timeout <= 0:
		return fmt.Errorf("timeout %v: want a positive duration", c.Timeout)
	case c.objectLimit < 0 || c.objectLimit > math.MaxInt32:
		return fmt.Errorf("object limit %d: want 0 to %d bytes", c.objectLimit, math.MaxInt32)
	}
	return nil
}

// WithInitMethod says where ranks meet: "env://" (MASTER_ADDR and MASTER_PORT, the default), "tcp://host:port" (a
// port that is free on rank 0's machine) or "file:///path" (a file on a file system that all ranks share; the last
// rank to have met removes it). The last two take rank and world size from [WithRank], from ?rank=R&world_size=N, or else from
// RANK and WORLD_SIZE.
func WithInitMethod(url string) Option { return func(c *config) { c.Method = url } }

// WithRank says which rank this is, of how many.
func WithRank(rank, size int) Option {
	return func(c *config) { c.Rank, c.Size, c.Ranked = rank, size, true }
}

// WithStore lets ranks meet in s, which stays the caller's to close.
func WithStore(s Store) Option { return func(c *config) { c.Store = s } }

// WithTimeout limits one operation, and Init itself. The default is 30 minutes.
func WithTimeout(d time.Duration) Option { return func(c *config) { c.Timeout = d } }

// WithTransport says how bytes move: "tcp", or "auto" (the default), which lets ranks of one machine share memory where they
// can. "shm" is "auto" for those who rely on it: an error where they cannot.
func WithTransport(name string) Option { return func(c *config) { c.Transport = name } }

// WithConnections says how many TCP connections carry what goes to another rank, 1 to 16, of streams that this rank opens. By
// default, which is that of GORUN_COMM_CONNECTIONS or else "auto", it is one, and more to other machines where one would not fill
// the network: see "Several connections" in docs/comm.md.
func WithConnections(n int) Option { return func(c *config) { c.connections = strconv.Itoa(n) } }

// WithAddress says by which address of this machine other ranks reach it: an interface such as eth1, an address, a prefix such as
// 10.1.0.0/16 in which it lies, or a name. The default is that of GORUN_COMM_ADDR, which gorun sets by --local-addr, or else the
// address on the way to the master; where ranks meet in a file or a Store, the address on the default route.
func WithAddress(choice string) Option { return func(c *config) { c.Address = choice } }

// WithLogger says where comm tells of strangers that it turned away, of operations that take long, and of the file with all that
// led to a failure (see [Flight]). The default is [slog.Default], which writes to stderr; nil is silent.
func WithLogger(l *slog.Logger) Option { return func(c *config) { c.Log = l } }

// WithToken gives the secret by which ranks know each other; the default is GORUN_TOKEN. All ranks have the same. Without one all
// ranks must be of one user and on one machine: see "A token" in docs/comm.md.
func WithToken(token string) Option { return func(c *config) { c.Token = token } }

// WithTuning overrules the choice of algorithms that [Explain] prints: rules such as "all_reduce=doubling:32K,ring", which lets
// all-reduces of up to 32 KiB go by recursive doubling and longer ones round the ring, or "all_reduce@4=ring", which is for groups
// of 4 ranks, separated by semicolons or line ends. The default is GORUN_COMM_TUNE; "gorun bench --tune" measures and prints such
// rules. For the world, what rank 0 has been given counts; for a group of NewGroup, all ranks give the same.
func WithTuning(rules string) Option { return func(c *config) { c.tuning = rules } }

// WithCodec lets objects travel by c instead of CBOR. All ranks use the same codec.
func WithCodec(c Codec) Option { return func(cfg *config) { cfg.codec = c } }

// WithObjectLimit bounds the encoded size of what one rank gives to one call of the object functions, in bytes. All ranks
// have the same limit; 0 means [DefaultObjectLimit].
func WithObjectLimit(bytes int) Option { return func(c *config) { c.objectLimit = bytes } }

// WithTLS encrypts what travels between machines, from the meeting at rank 0's store on, with keys made of the token, which
// has at least 16 bytes then. All ranks say so, or none; gorun does by --worker-tls. A store of [WithStore] is not comm's to
// encrypt.
func WithTLS() Option { return func(c *config) { c.TLS = true } }

// WithFlightOnQuit reports whether SIGQUIT, which makes Go print the stacks of all goroutines and exit, prints the [Flight] of
// every group first; it does by default. A program that handles SIGQUIT itself gets it twice, unless it says false and
// calls [WriteFlight].
func WithFlightOnQuit(on bool) Option { return func(c *config) { c.flightOnQuit = on } }
