package comm

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"time"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/worker"
)

// An Option changes how [Init] joins.
type Option interface{ set(*config) }

// A GroupOption is an Option that also changes what [NewGroup] and [NewGroupOf] make. Such a group inherits from its parent what is
// not set.
type GroupOption interface {
	Option
	ofGroup()
}

// config is what options change.
type config = worker.Config

func setAll[O Option](c *config, opts []O) {
	for _, o := range opts {
		o.set(c)
	}
}

type option func(*config)

func (o option) set(c *config) { o(c) }

type groupOption struct{ option }

func (groupOption) ofGroup() {}

// WithInitMethod sets where ranks meet: "env://" (MASTER_ADDR and MASTER_PORT, the default), "tcp://host:port" (a
// free port on rank 0's machine) or "file:///path" (a file on a file system that all ranks share; the last rank that
// has met the others removes it). The last two take rank and world size from [WithRank], from ?rank=R&world_size=N,
// or else from RANK and WORLD_SIZE.
func WithInitMethod(url string) Option { return option(func(c *config) { c.Method = url }) }

// WithRank sets this process's rank and the number of ranks.
func WithRank(rank, size int) Option {
	return option(func(c *config) { c.Rank, c.Size, c.Ranked = rank, size, true })
}

// WithStore makes ranks meet in s. You have to close s yourself. No agent knows of such a world: see [WithRoundStore].
func WithStore(s Store) Option { return option(func(c *config) { c.Store = s }) }

// WithRoundStore makes ranks meet in the store that open returns, and otherwise as the environment says, so that [Rejoin]
// can follow: it calls open again, once the environment is that of the next round. comm closes the store when ranks have
// met.
func WithRoundStore(open func(ctx context.Context) (Store, error)) Option {
	return option(func(c *config) { c.OpenStore = open })
}

// WithTimeout limits one operation, and Init itself, to d > 0. The default is 30 minutes.
func WithTimeout(d time.Duration) GroupOption {
	return groupOption{func(c *config) { c.Timeout = d }}
}

// A Transport is how bytes move between ranks.
type Transport string

// The transports. With TransportAuto, the default, ranks of one machine share memory if they can. TransportShm is the
// same, but it is an error if they cannot. With TransportTCP no ranks share memory.
const (
	TransportAuto Transport = bootstrap.Auto
	TransportShm  Transport = "shm"
	TransportTCP  Transport = "tcp"
)

// WithTransport sets how bytes move.
func WithTransport(t Transport) Option { return option(func(c *config) { c.Transport = string(t) }) }

// WithConnections sets how many TCP connections, 1 to 16, this rank opens to another one. The default is
// GORUN_COMM_CONNECTIONS, or else "auto": that is one connection, or more to another machine if one would not use the
// whole network. See "Several connections" in docs/comm.md.
func WithConnections(n int) Option {
	return option(func(c *config) { c.Streams = strconv.Itoa(n) })
}

// An Interface is the name of a network interface, such as eth1.
type Interface string

// WithAddress sets the address by which other ranks reach this one: the address itself, a prefix that contains it,
// such as 10.1.0.0/16, or its network interface. The default is GORUN_COMM_ADDR, which gorun sets by --local-addr, or
// else the address that faces the master. If ranks meet in a directory or a Store, the default is the address on the
// default route.
func WithAddress[A Interface | netip.Addr | netip.Prefix](where A) Option {
	return option(func(c *config) { c.Address = fmt.Sprint(where) })
}

// WithLogger sets where comm logs connections that it has turned away, operations that take long, and the file with
// the [Flight] of a group that has failed. The default is [slog.Default], which writes to stderr. nil is silent.
func WithLogger(l *slog.Logger) Option { return option(func(c *config) { c.Log = l }) }

// WithPoll makes every call that waits for long call poll, 100 ms after it has begun to wait and then every 100 ms, in
// the goroutine of the call. If poll returns an error, the call ends with that error, and the group fails as if the
// context of the call had ended: the other members get an [AbortError] that names this rank. [Work.WaitFor] returns the
// error, and the operation and the group go on. A program in another language can handle its signals in poll. On several
// machines, long collectives are slower with it: this rank does not work in two goroutines at once.
func WithPoll(poll func() error) Option { return option(func(c *config) { c.Poll = poll }) }

// WithBufferCheck makes every call refuse a buffer that is not memory of this process, or that it may not write to where
// the call does: the error is an [ArgumentError], and nothing is sent. Without it, such a buffer ends the process. Slices
// of Go are always memory: this is for programs in other languages. It looks at the first and the last byte of a buffer.
// Memory of [Alloc] then stays until [MemFree], also if its world has been closed.
func WithBufferCheck() Option { return option(func(c *config) { c.CheckBuffers = true }) }

// A Binding says which threads of this process run only on the processors that gorun has set aside for it, if several
// ranks are on the machine. Threads that somebody else has bound stay as they are.
type Binding worker.Binding

// The bindings. BindAuto, the default, binds all threads when Init begins, and so those that they start. BindCall binds
// only a thread that is in a blocking call, which takes up to 20 µs if the thread has to move: for programs with threads
// of their own, such as those of OpenMP. BindNone binds none.
const (
	BindAuto = Binding(worker.BindAuto)
	BindCall = Binding(worker.BindCall)
	BindNone = Binding(worker.BindNone)
)

// WithBinding sets what is bound to processors.
func WithBinding(b Binding) Option { return option(func(c *config) { c.Binding = worker.Binding(b) }) }

// WithToken sets the secret by which ranks authenticate each other. The default is GORUN_TOKEN. All ranks have the
// same token. Without one all ranks must run for one user on one machine: see "A token" in docs/comm.md.
func WithToken(token string) Option { return option(func(c *config) { c.Token = token }) }

// A Tuning has rules for the choice of algorithms that [Explain] prints. [ParseTuning] makes one.
type Tuning struct{ rules choice.Tuning }

// ParseTuning parses rules, which are separated by semicolons or line ends. With the rule
// "all_reduce=doubling:32K,ring" all-reduces of up to 32 KiB use recursive doubling, and longer ones a ring. The rule
// "all_reduce@4=ring" is for groups of 4 ranks. "gorun bench --tune" measures, and prints such rules.
func ParseTuning(rules string) (Tuning, error) {
	t, err := core.ParseTuning(rules)
	if err != nil {
		return Tuning{}, &ArgumentError{Op: "ParseTuning", Err: err}
	}
	return Tuning{t}, nil
}

// String returns the rules as [ParseTuning] reads them.
func (t Tuning) String() string { return t.rules.String() }

// WithTuning overrules the choice of algorithms. The default is GORUN_COMM_TUNE. A world uses the tuning of rank 0.
// For a group of [NewGroup] all ranks pass the same one.
func WithTuning(t Tuning) GroupOption {
	return groupOption{func(c *config) { c.Tuning, c.Rules = t.rules, "" }}
}

// WithCodec makes objects travel by c instead of CBOR. All ranks use the same codec.
func WithCodec(c Codec) GroupOption {
	return groupOption{func(cfg *config) { cfg.Objects.Codec = c }}
}

// WithObjectLimit limits the encoded size, in bytes, of what one rank passes to one call of the object functions. All
// ranks have the same limit. 0 means [DefaultObjectLimit].
func WithObjectLimit(bytes int) GroupOption {
	return groupOption{func(c *config) { c.Objects.Limit = bytes }}
}

// WithTLS encrypts everything that travels between machines, including the connections to rank 0's store, with keys
// made of the token. The token must have at least 16 bytes. Either all ranks use WithTLS, or none does. gorun sets it
// by --worker-tls. comm does not encrypt a store of [WithStore].
func WithTLS() Option { return option(func(c *config) { c.TLS = true }) }

// WithFlightOnQuit sets whether SIGQUIT prints the [Flight] of every group before Go prints the stacks of all
// goroutines and exits. It does so by default. If your program handles SIGQUIT itself, it gets the signal twice,
// unless you pass false. Then you can call [WriteFlight].
func WithFlightOnQuit(on bool) Option { return option(func(c *config) { c.FlightOnQuit = on }) }
