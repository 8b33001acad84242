// Package launch runs a job on several hosts: it starts a proxy on each over ssh, gives each its node of the job, and carries output,
// stdin, signals and the exit code. stateMachine decides (state.go, step.go, result.go) and is pure; the launcher around it has one loop
// with one select. Package remote is the other end of the connections.
package launch

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/flow"
	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/launcher/spool"
	"github.com/gorun/gorun/rendezvous"
)

// A Config describes a launched job.
type Config struct {
	Rules
	Shell   Shell
	Path    string // of gorun on the hosts
	Copy    *Copy  // to the hosts that have no gorun at Path; nil: none
	Version string // of gorun, the same on all hosts
	Self    string // gorun's file here, for hosts that are this machine
	IsSelf  []bool // by host: it is this machine, which needs no remote shell

	Job   func(host int, endpoints []rendezvous.Endpoint) frame.Job // endpoints: where the nodes meet, if Meets
	Begin func(endpoints []rendezvous.Endpoint)                     // is called once, before the first host gets its job; nil: nothing is called
	Stdin *os.File                                                  // goes to the first host; nil: none

	Stdout, Stderr      *spool.Writer
	Interrupts, Signals <-chan os.Signal // that end the job; that are for the workers
	Warn                func(text string)
}

// Check returns an error if the remote shell is needed, and is not on this machine.
func (c *Config) Check() error {
	if slices.Contains(c.IsSelf, false) {
		return c.Shell.Check()
	}
	return nil
}

// Run runs the job. It returns when it has ended, and nothing of it is left here.
func Run(ctx context.Context, c Config) Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &launcher{Config: c, events: make(chan any), over: make(chan struct{}), hosts: make([]remoteHost, len(c.Hosts))}
	defer close(l.over)
	l.machine = newStateMachine(c.Rules, time.Now())
	starter := newStarter()
	defer close(starter)
	for i := range l.hosts {
		h := &l.hosts[i]
		h.output[0] = outputStream{kind: frame.Stdout, sink: flow.NewSink(c.Stdout.Source(nil))}
		h.output[1] = outputStream{kind: frame.Stderr, sink: flow.NewSink(c.Stderr.Source(nil))}
		var hostCtx context.Context
		hostCtx, h.cancel = context.WithCancel(ctx)
		s := &session{config: &l.Config, host: i, starter: starter, events: l.events}
		go s.run(hostCtx)
	}
	return l.loop()
}

// A launcher is the loop around a stateMachine. Its goroutine owns all but the channels.
type launcher struct {
	Config
	machine *stateMachine
	hosts   []remoteHost
	events  chan any
	over    chan struct{} // closed when the loop has ended

	addresses []rendezvous.Endpoint // where the nodes meet, once that is known
	begun     bool                  // a host has got its job
	input     *flow.Credit
	timer     *time.Timer
}

// A remoteHost is what the loop has of a host.
type remoteHost struct {
	cancel     context.CancelFunc // ends its connection
	connection *connection        // nil: none yet
	closed     bool               // its connection has ended for good
	output     [2]outputStream
}

// What sessions and other goroutines tell the loop, in addition to events of the state machine.
type (
	// connected: there is a connection.
	connected struct {
		host       int
		connection *connection
	}
	// received: a frame came.
	received struct {
		host    int
		kind    frame.Kind
		payload []byte
	}
	// closed: the connection has ended for good.
	closed struct {
		host int
		why  *Failure
	}
	// hasRoom: the destination of a stream has room again.
	hasRoom struct {
		host   int
		stream int
	}
	// read: something came from stdin; nil: its end.
	read struct{ data []byte }
)

func (l *launcher) loop() Result {
	l.timer = time.NewTimer(0)
	defer l.timer.Stop()
	heartbeat := time.NewTicker(heartbeatOf(l.Silence))
	defer heartbeat.Stop()
	for left := len(l.hosts); left > 0; {
		if at := l.machine.deadline(); !at.IsZero() {
			l.timer.Reset(time.Until(at))
		}
		select {
		case e := <-l.events:
			if l.take(e) {
				left--
			}
		case sig := <-l.Interrupts:
			l.step(interrupted{sig.(syscall.Signal)})
		case sig := <-l.Signals:
			l.step(signalled{sig.(syscall.Signal)})
		case <-heartbeat.C:
			l.beat()
		case <-l.timer.C:
			l.step(elapsed{})
		}
	}
	for i := range l.hosts {
		for s := range l.hosts[i].output {
			l.finishLine(&l.hosts[i].output[s])
		}
	}
	return l.machine.result()
}

// heartbeatOf returns the time between two signs of life, of which several may be late.
func heartbeatOf(silence time.Duration) time.Duration { return silence / 5 }

// take takes what came in. It reports whether a host has none more to come.
func (l *launcher) take(e any) bool {
	switch e := e.(type) {
	case connected:
		l.hosts[e.host].connection = e.connection
	case said:
		if why := l.refuse(e); why != nil {
			l.step(lost{e.host, why})
		} else {
			e.hello.Addr = l.addrOf(e.host, e.hello.Addr)
			l.step(e)
		}
	case alive, copying:
		l.step(e)
	case received:
		l.step(alive{e.host})
		l.onFrame(e)
	case closed:
		l.step(lost(e))
		l.hosts[e.host].closed = true
		return true
	case hasRoom:
		o := &l.hosts[e.host].output[e.stream]
		o.sink.Woken()
		taken, room := o.sink.Room()
		l.returned(e.host, e.stream, taken, room)
	case read:
		l.hosts[0].connection.send(frame.Stdin, e.data)
	}
	return false
}

// refuse returns why a proxy cannot be used; nil: it can.
func (l *launcher) refuse(e said) *Failure {
	if e.hello.Protocol == frame.Protocol && e.hello.Version == l.Version {
		return nil
	}
	there, here := cut(e.hello.Version), l.Version
	if there == here { // between two releases, the version is the same
		there, here = fmt.Sprintf("%s (protocol %d)", there, e.hello.Protocol), fmt.Sprintf("%s (protocol %d)", here, frame.Protocol)
	}
	return &Failure{l.Hosts[e.host].Name, "starting gorun", fmt.Sprintf(
		"%s there is gorun %s, and this is %s: install the same version, name another one with --remote-path, or let --copy copy this one",
		l.Path, there, here), codeCorrect}
}

func (l *launcher) step(e event) {
	for _, a := range l.machine.Step(e, time.Now()) {
		switch a := a.(type) {
		case start:
			l.start(a.host)
		case signal:
			l.hosts[a.host].connection.send(frame.Signal, []byte{byte(a.sig)})
		case kill:
			l.hosts[a.host].connection.send(frame.Kill, nil)
		case drop:
			if l.machine.nodes[a.host].outcome == nil { // else the connection is about to end
				l.hosts[a.host].cancel()
			}
		case warn:
			l.Warn(a.text)
		}
	}
}

// start sends the job to a host, and stdin to the first one.
func (l *launcher) start(host int) {
	if l.Meets && l.addresses == nil {
		l.addresses = l.meetingPoints()
	}
	if !l.begun && l.Begin != nil {
		l.Begin(l.addresses)
	}
	l.begun = true
	job := l.Job(host, l.addresses)
	job.Stdin = host == 0 && l.Stdin != nil
	job.Heartbeat, job.Silence, job.Grace = heartbeatOf(l.Silence), l.Silence, l.Grace
	l.hosts[host].connection.send(frame.Start, frame.Encode(job))
	if job.Stdin {
		l.input = flow.NewCredit()
		go func() {
			flow.Pump(l.Stdin, l.input, func(b []byte) { l.post(read{b}) })
			l.post(read{nil})
		}()
	}
}

// post gives an event to the loop, unless that has ended.
func (l *launcher) post(e any) {
	select {
	case l.events <- e:
	case <-l.over:
	}
}

// beat gives all proxies a sign of life, unless something is on its way to them.
func (l *launcher) beat() {
	for i := range l.hosts {
		if c := l.hosts[i].connection; c != nil && l.machine.nodes[i].phase == running && c.to.Full(0) == nil {
			c.send(frame.Heartbeat, nil)
		}
	}
}

func (l *launcher) onFrame(e received) {
	switch e.kind {
	case frame.Stdout:
		l.onOutput(e.host, 0, e.payload)
	case frame.Stderr:
		l.onOutput(e.host, 1, e.payload)
	case frame.Taken:
		if stream, n, err := frame.ParseTaken(e.payload); err == nil && stream == frame.Stdin && e.host == 0 && l.input != nil {
			l.input.Add(n)
		}
	case frame.Heartbeat:
	case frame.Scaled:
		least, err := frame.ParseScaled(e.payload)
		if err != nil {
			l.onBadFrame(e.host, "a report that makes no sense: "+err.Error())
			return
		}
		l.step(scaled{e.host, least})
	case frame.Ended:
		outcome, err := frame.ParseOutcome(e.payload)
		if err != nil {
			l.onBadFrame(e.host, "a report that makes no sense: "+err.Error())
			return
		}
		l.step(finished{e.host, outcome})
	default:
		l.onBadFrame(e.host, fmt.Sprintf("a frame of kind %d", e.kind))
	}
}

func (l *launcher) onBadFrame(host int, what string) {
	l.step(lost{host, &Failure{l.Hosts[host].Name, "running the job", "gorun there has sent " + what, codeLost}})
}
