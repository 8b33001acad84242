package worker

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
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/objects"
	"github.com/gorun/gorun/comm/internal/transport/tcp"
	"github.com/gorun/gorun/comm/store"
)

// A Binding says what of a process is bound to its processors.
type Binding uint8

// The bindings.
const (
	BindAuto Binding = iota // all its threads, from Join on
	BindCall                // the thread that is in a call
	BindNone
)

// DefaultTimeout is the limit of one operation, and of joining, unless the program sets another.
const DefaultTimeout = 30 * time.Minute

// Config says how a process joins a world.
type Config struct {
	bootstrap.Config
	ChunkSize     int           // how many bytes of a message of a plan travel at once; 0: choice.ChunkSize
	NotifyTimeout time.Duration // see endpoint.Options.News
	FlightOnQuit  bool          // SIGQUIT prints the flight recorders
	Poll          func() error  // see core.World
	CheckBuffers  bool          // see core.World
	Binding       Binding       // to the processors of which the agent has told this process

	Rules   string         // of the tuning, which Check parses into Tuning; empty: Tuning is set
	Streams string         // the number of Connections, which Check parses, or auto; empty: Connections is set
	Objects objects.Format // how objects travel

	// OpenStore returns the store in which ranks of a round meet; nil: they meet elsewhere. It is called for each round.
	OpenStore func(ctx context.Context) (store.Store, error)
}

// NewConfig returns what the environment says, changed by set.
func NewConfig(set func(*Config)) *Config {
	c := &Config{
		Config: bootstrap.Config{
			Method: "env://", Timeout: DefaultTimeout, Transport: bootstrap.Auto, Token: os.Getenv("GORUN_TOKEN"),
			Address: os.Getenv("GORUN_COMM_ADDR"), TLS: os.Getenv("GORUN_TLS") == "True", Log: slog.Default(),
		},
		NotifyTimeout: core.NotifyTimeout, FlightOnQuit: true,
		Rules: os.Getenv("GORUN_COMM_TUNE"), Streams: os.Getenv("GORUN_COMM_CONNECTIONS"),
	}
	set(c)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Check refuses settings that are wrong for any group, and parses those that are text.
func (c *Config) Check() (err error) {
	if c.Rules != "" {
		if c.Tuning, err = core.ParseTuning(c.Rules); err != nil {
			return err
		}
	}
	if c.Streams != "" && c.Streams != bootstrap.Auto {
		c.Connections, err = strconv.Atoi(c.Streams)
		if err != nil || c.Connections < 1 || c.Connections > tcp.MostConnections {
			return fmt.Errorf("%q connections: want auto or 1 to %d (GORUN_COMM_CONNECTIONS)", c.Streams, tcp.MostConnections)
		}
	}
	switch {
	case c.Timeout <= 0:
		return fmt.Errorf("timeout %v: want a positive duration", c.Timeout)
	case c.Objects.Limit < 0 || c.Objects.Limit > math.MaxInt32:
		return fmt.Errorf("object limit %d: want 0 to %d bytes", c.Objects.Limit, math.MaxInt32)
	}
	return nil
}

// isOfRound reports whether the world is the one that the environment describes: the world of the round.
func (c *Config) isOfRound() bool { return c.Method == "env://" && c.Store == nil && !c.Ranked }

// polled calls f, and Poll as long as f has not returned. If Poll returns an error, the context of f ends.
func (c *Config) polled(ctx context.Context, f func(ctx context.Context) error) (err error) {
	if c.Poll == nil {
		return f(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = f(ctx)
	}()
	polling := endpoint.Await(endpoint.WithPoll(context.WithoutCancel(ctx), c.Poll), done)
	if polling == nil {
		return err
	}
	cancel()
	if <-done; err == nil { // it has been faster
		return nil
	}
	return polling
}

// bind binds this process to its share of the processors, if its agent has told it one: then several ranks are on this machine.
// With BindCall it returns what binds a call.
func (c *Config) bind() (call func() func(), err error) {
	share := os.Getenv(affinity.Variable)
	switch c.Binding {
	case BindAuto:
		err = affinity.Bind(share)
	case BindCall:
		call, err = affinity.Calls(share)
	case BindNone:
	}
	if wrong, ok := errors.AsType[*affinity.ShareError](err); ok {
		return nil, &core.Error{Kind: core.BadArgument, Op: "Init", Err: wrong}
	}
	if err != nil { // ranks that are not bound are slower, and no worse
		c.Log.Debug("comm: this rank is not bound to its processors", "error", err)
	}
	return call, nil
}
