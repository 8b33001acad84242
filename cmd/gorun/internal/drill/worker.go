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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env"
)

// WorkerCommand is the gorun command that runs a worker of a drill. Its arguments are those of Work.
const WorkerCommand = "drill-worker"

// A message is what a worker reports to the drill, one line of JSON. The first one is started.
type message struct {
	Kind       kind   `json:"kind"`
	Place      *place `json:"place,omitempty"`      // of started and rejoined
	State      int    `json:"state,omitempty"`      // of computed: how often the job has computed
	Goroutines int    `json:"goroutines,omitempty"` // of computed: how many the worker has
	Error      string `json:"error,omitempty"`      // of stuck and wrong
	Death      *death `json:"death,omitempty"`      // of stuck: that of the rank that the error names; nil: not known
}

type kind string

const (
	started  kind = "started"
	rejoined kind = "rejoined" // it has outlived its round, and is in another
	computed kind = "computed" // together with all others, once more
	stuck    kind = "stuck"    // an operation has failed
	wrong    kind = "wrong"    // an operation has had a wrong result, and no error
	stopping kind = "stopping" // it got SIGTERM
)

// A place is a worker's part in a round.
type place struct {
	Node     int    `json:"node"` // the drill's number, which stays the same from round to round
	Local    int    `json:"local"`
	Pid      int    `json:"pid"`
	Round    int    `json:"round"`
	Rank     int    `json:"rank"`
	World    int    `json:"world"`
	Restarts int    `json:"restarts"`
	Master   string `json:"master"`
}

// A death is what a worker has learned of the end of another.
type death struct {
	Rank        int  `json:"rank"`
	ExitCode    int  `json:"exit_code"` // -n: signal n
	OutOfMemory bool `json:"out_of_memory"`
}

// What the drill says to a worker, one line each.
const (
	finishLine     = "finish"      // end successfully, and all others of the round too
	takeMemoryLine = "take memory" // all that there is
	loopLine       = "loop"        // and compute no more
)

// How a worker behaves. Without any of these it ends when it cannot compute any more.
const (
	hangs   = "hangs"   // it does nothing then, until gorun ends it
	rejoins = "rejoins" // it goes on in the next round
	writes  = "writes"  // it writes all the time, whether or not somebody reads
	logs    = "logs"    // it writes 1 KiB each time before it computes
)

// Work is a worker of a drill. It computes with all the others, over and over, until it gets SIGTERM or the drill ends.
// The drill listens at socket.
func Work(ctx context.Context, socket, node string, behaviours []string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	d, err := dialDrill(socket, node)
	if err != nil {
		return err
	}
	d.logs = slices.Contains(behaviours, logs)
	if slices.Contains(behaviours, writes) {
		go writeAlways()
	}
	over := make(chan error, 1)
	go func() { over <- d.compute(ctx, slices.Contains(behaviours, rejoins)) }()
	for {
		select {
		case <-stop:
			return d.send(message{Kind: stopping})
		case <-d.gone:
			return errors.New("the drill has ended")
		case err := <-over:
			if err == nil || !slices.Contains(behaviours, hangs) {
				_ = comm.ExitCode(err) // which leaves it to gorun who is at fault
				return err
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

// logLine is what a worker that logs writes at once.
var logLine = strings.Repeat("there is much to log ", 50)

// takeMemory takes memory until the kernel has no more, and kills this process.
func takeMemory() {
	const size = 1 << 20
	for all := [][]byte(nil); ; {
		part := make([]byte, size)
		for i := 0; i < size; i += 1 << 10 {
			part[i] = 1
		}
		all = append(all, part)
		runtime.KeepAlive(all)
	}
}

// A drillConn is a worker's connection to the drill.
type drillConn struct {
	conn   net.Conn
	node   int
	logs   bool
	finish atomic.Bool   // the drill wants the job to end
	loop   atomic.Bool   // the drill wants this worker to loop
	gone   chan struct{} // closed when the drill is
}

func dialDrill(socket, node string) (*drillConn, error) {
	d := &drillConn{gone: make(chan struct{})}
	var err error
	if d.node, err = strconv.Atoi(node); err != nil {
		return nil, err
	}
	p, err := d.place()
	if err != nil {
		return nil, err
	}
	if d.conn, err = net.Dial("unix", socket); err != nil {
		return nil, err
	}
	go d.listen()
	return d, d.send(message{Kind: started, Place: p})
}

// place reads the worker's part in the present round from its environment.
func (d *drillConn) place() (*place, error) {
	w, err := env.FromOS()
	if err != nil {
		return nil, err
	}
	return &place{
		Node: d.node, Local: w.LocalRank, Pid: os.Getpid(), Round: w.Round, Rank: w.Rank, World: w.WorldSize, Restarts: w.RestartCount,
		Master: fmt.Sprintf("%s:%d", w.MasterAddr, w.MasterPort),
	}, nil
}

// listen waits for what the drill says, and for the end of the connection.
func (d *drillConn) listen() {
	defer close(d.gone)
	for lines := bufio.NewScanner(d.conn); lines.Scan(); {
		switch lines.Text() {
		case finishLine:
			d.finish.Store(true)
		case takeMemoryLine:
			go takeMemory()
		case loopLine:
			d.loop.Store(true)
		}
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
