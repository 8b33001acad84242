package comm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/gorun/gorun/comm/internal/affinity"
	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/transport/tcp"
)

// Init joins the world and returns it, once every rank has come. Without options it takes rank and size from the environment that gorun (or
// torchrun) sets for its workers, or else from that of a resource manager that has started this process: Slurm, Open MPI, MPICH or Flux.
// [WithInitMethod] has other ways to meet. If ranks do not come before ctx ends or the timeout is over, the error is a [MissingRanksError].
// After the world has been closed, Init joins the next world of the same ranks.
func Init(ctx context.Context, opts ...Option) (*Group, error) {
	if err := connectAgent(ctx, opts); err != nil {
		return nil, fmt.Errorf("comm: Init: %w", err)
	}
	return join(ctx, "Init", opts)
}

// join joins the world, for op.
func join(ctx context.Context, op string, opts []Option) (*Group, error) {
	cfg := newConfig(opts)
	if err := cfg.check(); err != nil {
		return nil, &ArgumentError{Op: op, Err: err}
	}
	if err := cfg.bind(); err != nil {
		return nil, &ArgumentError{Op: op, Err: err}
	}
	during, cancel := cfg.during(ctx)
	defer cancel()
	file := cfg.progressFile()
	defer reportWaiting(file)()
	w, err := bootstrap.Join(during, cfg.Config)
	if err != nil && cfg.mayRejoin() {
		if over := awaitOver(during, err); over != nil {
			return nil, overError(op, *over)
		}
	}
	if err != nil {
		err = notJoined(op, err)
		if cfg.mayRejoin() {
			life.failure.Store(&err)
		} else {
			life.others.Store(&err)
		}
		return nil, err
	}
	g, err := newWorld(cfg, w)
	if err != nil {
		return nil, fmt.Errorf("comm: %s: %w", op, err)
	}
	if cfg.flightOnQuit {
		g.world.leave = append(g.world.leave, onQuit.enter(watchQuit))
	}
	if file != "" {
		g.world.leave = append(g.world.leave, onProgress.enter(func() func() { return reportProgress(g, file) }))
	}
	if cfg.mayRejoin() {
		if err := life.adopt(g.world); err != nil {
			return nil, fmt.Errorf("comm: %s: %w", op, errors.Join(err, g.Close()))
		}
		life.worlds.add(g)
		stop := g.world.round.AfterFinal(g.world.onFinal)
		g.world.leave = append(g.world.leave, func() { stop() })
	} else {
		life.others.Store(nil) // what failed before this world is not why a program calls Rejoin
	}
	return g, nil
}

// notJoined returns err, because of which this rank has not met the others in op, as an error of this package.
func notJoined(op string, err error) error {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return public(e)
	}
	if m, ok := errors.AsType[*bootstrap.MissingError](err); ok {
		err = &MissingRanksError{Missing: m.Missing, Size: m.Size, Where: m.Where, After: m.After, Err: m.Err, onlyErr: m.Serves}
	}
	return fmt.Errorf("comm: %s: %w", op, err)
}

// DefaultTimeout is the limit of one operation, and of Init, unless [WithTimeout] says otherwise.
const DefaultTimeout = 30 * time.Minute

// An Option changes how [Init] joins, or what [NewGroup] makes.
type Option func(*config)

type config struct {
	bootstrap.Config
	chunkSize     int           // how many bytes of a message of a plan travel at once; 0: plan.ChunkSize
	notifyTimeout time.Duration // see endpoint.Options.News
	tuning        string        // the rules of WithTuning, which check parses into Tuning
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

// check refuses settings that are wrong for any group, and parses those that are text.
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

// bind binds this process to its share of the processors, if its agent has told it one: then several ranks are on this machine.
func (c *config) bind() error {
	err := affinity.Bind(os.Getenv(affinity.Variable))
	if wrong, ok := errors.AsType[*affinity.ShareError](err); ok {
		return wrong
	}
	if err != nil { // ranks that are not bound are slower, and no worse
		c.Log.Debug("comm: this rank is not bound to its processors", "error", err)
	}
	return nil
}

// WithInitMethod sets where ranks meet: "env://" (MASTER_ADDR and MASTER_PORT, the default), "tcp://host:port" (a free port on rank 0's
// machine) or "file:///path" (a file on a file system that all ranks share; the last rank that has met the others removes it). The last two
// take rank and world size from [WithRank], from ?rank=R&world_size=N, or else from RANK and WORLD_SIZE.
func WithInitMethod(url string) Option { return func(c *config) { c.Method = url } }

// WithRank sets this process's rank and the number of ranks.
func WithRank(rank, size int) Option {
	return func(c *config) { c.Rank, c.Size, c.Ranked = rank, size, true }
}

// WithStore makes ranks meet in s. You have to close s yourself.
func WithStore(s Store) Option { return func(c *config) { c.Store = s } }

// WithTimeout limits one operation, and Init itself. The default is 30 minutes.
func WithTimeout(d time.Duration) Option { return func(c *config) { c.Timeout = d } }

// WithTransport sets how bytes move: "tcp", or "auto" (the default), with which ranks of one machine share memory if they can. "shm" is
// like "auto", but it is an error if ranks cannot share memory.
func WithTransport(name string) Option { return func(c *config) { c.Transport = name } }

// WithConnections sets how many TCP connections, 1 to 16, this rank opens to another one. The default is GORUN_COMM_CONNECTIONS, or else
// "auto": that is one connection, or more to another machine if one would not use the whole network. See "Several connections" in
// docs/comm.md.
func WithConnections(n int) Option { return func(c *config) { c.connections = strconv.Itoa(n) } }

// WithAddress sets the address by which other ranks reach this one: an interface such as eth1, an address, a prefix such as 10.1.0.0/16
// that contains the address, or a name. The default is GORUN_COMM_ADDR, which gorun sets by --local-addr, or else the address that faces
// the master. If ranks meet in a directory or a Store, the default is the address on the default route.
func WithAddress(choice string) Option { return func(c *config) { c.Address = choice } }

// WithLogger sets where comm logs connections that it has turned away, operations that take long, and the file with the [Flight] of a group
// that has failed. The default is [slog.Default], which writes to stderr. nil is silent.
func WithLogger(l *slog.Logger) Option { return func(c *config) { c.Log = l } }

// WithToken sets the secret by which ranks authenticate each other. The default is GORUN_TOKEN. All ranks have the same token. Without one
// all ranks must run for one user on one machine: see "A token" in docs/comm.md.
func WithToken(token string) Option { return func(c *config) { c.Token = token } }

// WithTuning overrules the choice of algorithms that [Explain] prints. Rules are separated by semicolons or line ends. With the rule
// "all_reduce=doubling:32K,ring" all-reduces of up to 32 KiB use recursive doubling, and longer ones a ring. The rule "all_reduce@4=ring"
// is for groups of 4 ranks. The default is GORUN_COMM_TUNE. "gorun bench --tune" measures, and prints such rules. A world uses the rules of
// rank 0. For a group of NewGroup all ranks pass the same rules.
func WithTuning(rules string) Option { return func(c *config) { c.tuning = rules } }

// WithCodec makes objects travel by c instead of CBOR. All ranks use the same codec.
func WithCodec(c Codec) Option { return func(cfg *config) { cfg.codec = c } }

// WithObjectLimit limits the encoded size, in bytes, of what one rank passes to one call of the object functions. All ranks have the same
// limit. 0 means [DefaultObjectLimit].
func WithObjectLimit(bytes int) Option { return func(c *config) { c.objectLimit = bytes } }

// WithTLS encrypts everything that travels between machines, including the connections to rank 0's store, with keys made of the token. The
// token must have at least 16 bytes. Either all ranks use WithTLS, or none does. gorun sets it by --worker-tls. comm does not encrypt a
// store of [WithStore].
func WithTLS() Option { return func(c *config) { c.TLS = true } }

// WithFlightOnQuit sets whether SIGQUIT prints the [Flight] of every group before Go prints the stacks of all goroutines and exits. It does
// so by default. If your program handles SIGQUIT itself, it gets the signal twice, unless you pass false. Then you can call [WriteFlight].
func WithFlightOnQuit(on bool) Option { return func(c *config) { c.flightOnQuit = on } }
