package drill

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env"
)

// WorkerCommand is the gorun command that runs a worker of a drill. Its arguments are those of Work.
const WorkerCommand = "drill-worker"

// A message is what a worker reports to the drill, one line of JSON. The first one is started.
type message struct {
	Kind  kind   `json:"kind"`
	Place *place `json:"place,omitempty"` // of started
	Error string `json:"error,omitempty"` // of stuck and wrong
}

type kind string

const (
	started  kind = "started"
	computed kind = "computed" // together with all others, once more
	stuck    kind = "stuck"    // an operation has failed
	wrong    kind = "wrong"    // an operation has had a wrong result, and no error
	stopping kind = "stopping" // it got SIGTERM
)

// A place identifies a worker.
type place struct {
	Node     int    `json:"node"` // the drill's number, which stays the same from round to round
	Pid      int    `json:"pid"`
	Round    int    `json:"round"`
	Rank     int    `json:"rank"`
	World    int    `json:"world"`
	Restarts int    `json:"restarts"`
	Master   string `json:"master"`
}

// The pause between two computations, and between two messages about them.
const (
	computePause = 5 * time.Millisecond
	reportPause  = 50 * time.Millisecond
)

// What a worker does when it cannot compute any more.
const (
	fails = "fails" // it ends
	hangs = "hangs" // it does nothing, until gorun ends it
	// writes is like fails, but the worker also writes all the time, whether or not somebody reads.
	writes = "writes"
)

// Work is a worker of a drill. It computes with all the others, over and over, until it gets SIGTERM or the drill ends.
// The drill listens at socket; way is one of those above.
func Work(ctx context.Context, socket, node, way string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	d, err := dialDrill(socket, node)
	if err != nil {
		return err
	}
	if way == writes {
		go writeAlways()
	}
	over := make(chan error, 1)
	go func() { over <- d.compute(ctx) }()
	for {
		select {
		case <-stop:
			return d.send(message{Kind: stopping})
		case <-d.gone:
			return errors.New("the drill has ended")
		case err := <-over:
			if err == nil {
				return nil
			}
			if sendErr := d.send(message{Kind: stuck, Error: err.Error()}); sendErr != nil || way != hangs {
				return errors.Join(err, sendErr)
			}
		}
	}
}

// writeAlways fills stdout and stderr.
func writeAlways() {
	for {
		_, _ = fmt.Println("there is always something to say") // if nobody reads that any more, gorun ends this process
		_, _ = fmt.Fprintln(os.Stderr, "and to complain of")
	}
}

// A drillConn is a worker's connection to the drill.
type drillConn struct {
	conn   net.Conn
	finish atomic.Bool   // the drill wants the job to end
	gone   chan struct{} // closed when the drill is
}

func dialDrill(socket, node string) (*drillConn, error) {
	w, err := env.FromOS()
	if err != nil {
		return nil, err
	}
	p := place{Pid: os.Getpid(), Round: w.Round, Rank: w.Rank, World: w.WorldSize, Restarts: w.RestartCount}
	p.Master = fmt.Sprintf("%s:%d", w.MasterAddr, w.MasterPort)
	if p.Node, err = strconv.Atoi(node); err != nil {
		return nil, err
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	d := &drillConn{conn: conn, gone: make(chan struct{})}
	go d.listen()
	return d, d.send(message{Kind: started, Place: &p})
}

// listen waits for the only message that the drill sends, which asks the worker to finish, and for the end of the connection.
func (d *drillConn) listen() {
	defer close(d.gone)
	for lines := bufio.NewScanner(d.conn); lines.Scan(); {
		d.finish.Store(true)
	}
}

func (d *drillConn) send(m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = d.conn.Write(append(text, '\n'))
	return err
}

// lengths are the numbers of elements that workers add up in turn.
var lengths = []int{2, 1000, 40_000}

// numbers returns a rank's input in a turn: 0, followed by numbers that differ from those in neighbouring places, turns and ranks.
func numbers(turn, rank int) []int {
	list := make([]int, lengths[turn%len(lengths)])
	for i := 1; i < len(list); i++ {
		list[i] = turn + rank + i
	}
	return list
}

// checkSum checks that sum is the sum of the numbers of all ranks.
func checkSum(turn, size int, sum []int) error {
	for i, got := range sum {
		if want := size*(turn+i) + size*(size-1)/2; i > 0 && got != want {
			return fmt.Errorf("element %d of turn %d is %d, want %d", i, turn, got, want)
		}
	}
	return nil
}

// compute computes until one worker is asked to finish. Then it ends successfully in all workers after the same turn.
func (d *drillConn) compute(ctx context.Context) error {
	world, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	last := time.Time{}
	for turn := 0; ; turn++ {
		time.Sleep(computePause)
		sum := numbers(turn, world.Rank())
		if d.finish.Load() {
			sum[0] = 1
		}
		if err := comm.AllReduce(ctx, world, sum, comm.Sum); err != nil {
			return err
		}
		if err := checkSum(turn, world.Size(), sum); err != nil {
			return errors.Join(err, d.send(message{Kind: wrong, Error: err.Error()}))
		}
		if sum[0] > 0 {
			return world.Close()
		}
		if time.Since(last) > reportPause {
			last = time.Now()
			if err := d.send(message{Kind: computed}); err != nil {
				return err
			}
		}
	}
}
