// Package remote is the gorun proxy of gorun launch: what runs on a host at the other end of ssh. It starts gorun there as its child,
// carries its output, stdin and signals in frames, and ends it when the launcher is gone.
package remote

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/flow"
	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/launcher/spool"
)

// A Process is a job that runs on this host: gorun, with the flags of its node.
type Process struct {
	Stdin          io.WriteCloser // nil: it has none
	Stdout, Stderr io.Reader
	Signal         func(syscall.Signal)
	Wait           func() frame.Outcome // returns when it has ended
}

// A Config says how to run a proxy.
type Config struct {
	Hello   frame.Hello
	Signals <-chan os.Signal // to the proxy: they end the job
	// Start calls said, until Wait returns, with what gorun says.
	Start func(job frame.Job, said func(report)) (*Process, error)
}

const (
	// startTimeout is how long the launcher may take to send the job: it waits for the other hosts first.
	startTimeout = 10 * time.Minute
	// killMargin is how much longer than its grace the job may take to end before it is killed.
	killMargin = 5 * time.Second
	// killTimeout is how long a killed job may take to end.
	killTimeout = 5 * time.Second
	// restTimeout is how long output that has not ended with the job may come without any coming.
	restTimeout = time.Second
)

// sendTimeouts is how long the launcher may take to read the last frames.
var sendTimeouts = spool.Timeouts{Still: 10 * time.Second, Total: time.Minute}

// Run runs a proxy whose launcher is at the other end of in and out. It returns when nothing of the job is left, and the launcher has
// its outcome or is gone.
func Run(in io.Reader, out io.Writer, c Config) error {
	queue := spool.New()
	a := &proxy{
		config: c, to: queue.To(out, "the launcher").Source(nil),
		events: make(chan any), over: make(chan struct{}),
		silence: time.NewTimer(startTimeout), heartbeat: time.NewTicker(time.Hour), end: time.NewTimer(time.Hour),
	}
	defer close(a.over)
	defer a.silence.Stop()
	defer a.heartbeat.Stop()
	defer a.end.Stop()
	a.to.Put(frame.AppendHello([]byte("\n"), c.Hello))
	go a.receive(in)
	err := a.loop()
	if !a.lost {
		queue.Drain(sendTimeouts, nil)
	}
	return err
}

// What other goroutines tell the loop, in addition to a report, and to the frame.Outcome of the job.
type (
	// A message is what the launcher has sent; an error says that no more comes.
	message struct {
		kind    frame.Kind
		payload []byte
		err     error
	}
	// A piece is output of the job. Without data, the stream has ended.
	piece struct {
		stream int // index in streams
		data   []byte
	}
	// hasRoom: stdin has room again.
	hasRoom struct{}
)

// streams are those that the job writes.
var streams = [...]frame.Kind{frame.Stdout, frame.Stderr}

// proxy is the state of a proxy. loop owns it.
type proxy struct {
	config Config
	to     *spool.Source
	events chan any
	over   chan struct{} // closed when the loop has ended

	job     frame.Job
	process *Process // nil: not yet
	stdin   *spool.Writer
	sink    *flow.Sink // of stdin
	credits [len(streams)]*flow.Credit
	open    int            // streams that have not ended
	heard   time.Time      // when gorun last gave a sign of life; zero: it has not yet
	asked   bool           // gorun has got a signal that ends the job
	outcome *frame.Outcome // nil: the job has not ended
	still   time.Duration  // for which the launcher has read nothing, after the job has ended
	lost    bool           // the launcher is gone
	killed  bool
	done    bool

	silence   *time.Timer // the launcher gives no sign of life
	heartbeat *time.Ticker
	end       *time.Timer // the next step towards the end; does not matter before
	err       error
}

// post gives an event to the loop, and returns when the loop has it. It returns false if the loop has ended.
func (a *proxy) post(event any) bool {
	select {
	case a.events <- event:
		return true
	case <-a.over:
		return false
	}
}

func (a *proxy) receive(in io.Reader) {
	buffered := bufio.NewReader(in)
	for {
		kind, payload, err := frame.Read(buffered)
		if !a.post(message{kind, payload, err}) || err != nil {
			return
		}
	}
}

func (a *proxy) loop() error {
	for !a.done {
		select {
		case e := <-a.events:
			a.take(e)
		case sig := <-a.config.Signals:
			a.onSignal(sig.(syscall.Signal))
		case <-a.heartbeat.C:
			if a.heard.IsZero() || a.outcome != nil { // else gorun's signs of life are passed on, for it may be frozen
				a.beat()
			}
		case <-a.silence.C:
			a.lose(fmt.Errorf("no sign of life from the launcher for %v", cmp.Or(a.job.Silence, startTimeout)))
		case <-a.end.C:
			a.onEnd()
		}
	}
	return a.err
}

func (a *proxy) take(event any) {
	switch e := event.(type) {
	case message:
		a.onMessage(e)
	case piece:
		a.onOutput(e)
	case hasRoom:
		a.sink.Woken()
		a.returnStdin(a.sink.Room())
	case report:
		a.onReport(e)
	case frame.Outcome:
		a.onEnded(e)
	}
}

func (a *proxy) send(kind frame.Kind, payload []byte) { a.to.Put(frame.Append(nil, kind, payload)) }

func (a *proxy) onMessage(m message) {
	if m.err != nil {
		if errors.Is(m.err, io.EOF) {
			m.err = errors.New("the connection to the launcher has ended")
		}
		a.lose(m.err)
		return
	}
	if a.process != nil && !a.lost {
		a.silence.Reset(a.job.Silence)
	}
	switch m.kind {
	case frame.Start:
		a.start(m.payload)
	case frame.Heartbeat:
	case frame.Kill:
		a.kill()
	case frame.Signal:
		sig := syscall.Signal(m.payload[0])
		switch {
		case a.process == nil:
		case a.outcome == nil:
			a.signal(sig)
		case sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2: // it is to end
			a.abandon()
		}
	case frame.Stdin:
		a.onStdin(m.payload)
	case frame.Taken:
		stream, n, err := frame.ParseTaken(m.payload)
		for i, kind := range streams {
			if kind == stream && err == nil && a.credits[i] != nil {
				a.credits[i].Add(n)
			}
		}
	default:
		a.lose(fmt.Errorf("the launcher has sent a frame of kind %d", m.kind))
	}
}

func (a *proxy) start(payload []byte) {
	if a.process != nil {
		a.lose(errors.New("the launcher has sent two jobs"))
		return
	}
	job, err := frame.ParseJob(payload)
	if err != nil {
		a.lose(fmt.Errorf("the launcher has sent no job: %w", err))
		return
	}
	a.job = job
	a.silence.Reset(job.Silence)
	a.heartbeat.Reset(job.Heartbeat)
	if a.process, err = a.config.Start(job, func(r report) { a.post(r) }); err != nil {
		a.process = &Process{}
		a.onEnded(frame.Outcome{Code: 2, Cause: frame.Other, Text: err.Error()})
		return
	}
	if job.Stdin {
		file := a.process.Stdin
		a.stdin = spool.New().Open(spool.File{
			Open: func() (io.WriteCloser, error) { return file, nil }, Failed: func(error) {}, Unclosed: func(error) {},
		})
		a.sink = flow.NewSink(a.stdin.Source(nil))
	}
	for i, r := range []io.Reader{a.process.Stdout, a.process.Stderr} {
		credit := flow.NewCredit()
		a.credits[i] = credit
		a.open++
		go func() {
			flow.Pump(r, credit, func(b []byte) { a.post(piece{i, b}) })
			a.post(piece{i, nil})
		}()
	}
	go func() { a.post(a.process.Wait()) }()
}

func (a *proxy) onStdin(data []byte) {
	switch {
	case a.stdin == nil:
	case len(data) == 0:
		a.stdin.Close()
		a.stdin = nil
	default:
		a.returnStdin(a.sink.Put(data, len(data)))
	}
}

// returnStdin tells the launcher how much more it may send.
func (a *proxy) returnStdin(taken int, room <-chan struct{}) {
	if taken > 0 {
		a.to.Put(frame.AppendTaken(nil, frame.Stdin, taken))
	}
	flow.Await(room, a.over, func() { a.post(hasRoom{}) })
}

func (a *proxy) onOutput(p piece) {
	switch {
	case p.data == nil:
		a.open--
	case !a.lost:
		a.send(streams[p.stream], p.data)
	}
	if a.outcome != nil {
		a.still = 0
		a.end.Reset(restTimeout)
	}
	a.finish()
}
