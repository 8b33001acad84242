//go:build !linux

package shm

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"runtime"
	"time"

	"github.com/gorun/gorun/comm/transport"
)

// errUnsupported says why there is no shared memory.
var errUnsupported = errors.New("it takes Linux")

// A Segment is memory that processes share.
type Segment struct{}

func Create(int) (*Segment, error) { return nil, errUnsupported }
func (*Segment) Bytes() []byte     { return nil }
func (*Segment) Close() error      { return nil }
func (*Segment) seal()             {}

func back([]byte) error { return nil }

var errNoMemory = errors.New("there is not so much memory")

// newArea makes an area that is the process's own.
func newArea(size, unit int) (*area, error) { return &area{mem: make([]byte, size), unit: unit}, nil }

func wantLargePages([]byte)           {}
func backLarge([]byte)                {}
func (*Segment) punch(_, _ int) error { return errors.ErrUnsupported }
func available() int                  { return math.MaxInt }

// A Desk hands segments to other ranks.
type Desk struct{}

func OpenDesk([]byte, *slog.Logger) (*Desk, error) { return nil, errUnsupported }
func (*Desk) Address() string                      { return "" }
func (*Desk) Offer(uint64, *Segment)               {}
func (*Desk) Withdraw(uint64)                      {}
func (*Desk) Close() error                         { return nil }
func (*Desk) Serve(Place, transport.Handler)       {}
func (*Desk) Leave()                               {}

// A Place is a rank's in a world.
type Place struct {
	World             uint64
	Rank, Ranks, Here int
}

func (Place) Call(context.Context, string, []byte, int) (net.Conn, error) { return nil, errUnsupported }

func Fetch(context.Context, string, []byte, uint64) (*Segment, error) { return nil, errUnsupported }

func futexWait(*uint32, uint32, time.Duration) {}
func futexWake(*uint32)                        {}
func schedYield()                              { runtime.Gosched() }
func thisProcessor() uint32                    { return 0 }
func moveThread(func(uint32) bool)             {}

// CPUs tells nothing about the processors that this process may use.
func CPUs() string { return "" }
