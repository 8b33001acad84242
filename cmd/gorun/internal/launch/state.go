package launch

import (
	"fmt"
	"syscall"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/env/manager"
)

// Rules are what a launcher decides by.
type Rules struct {
	Hosts  []manager.Host // as the user has written them
	Least  int            // how many hosts the job needs at first; fewer than there are if hosts may fail
	Meets  bool           // the nodes meet over an etcd that one or three of them host, at endpoints that their proxies know
	Shared bool           // the nodes learn from each other how the job ends

	Connect time.Duration // from the start of a connection to the proxy's first word
	Silence time.Duration // without any sign of life, after which a host is lost
	Grace   time.Duration // from a signal to the end of the workers
}

const (
	// killMargin is how much longer than its grace a host may take to end before it is told to kill all.
	killMargin = 10 * time.Second
	// killTimeout is how long killing may take before the host is given up.
	killTimeout = 5 * time.Second
	// shareTimeout is how much longer than their grace the other nodes may take to end after a worker has failed.
	shareTimeout = 30 * time.Second
)

// A phase is how far a host has come.
type phase int

const (
	connecting phase = iota // nothing has come from its proxy
	ready                   // its proxy is there
	running                 // its proxy has the job
	ended                   // it has an outcome, or is lost
)

// A node is a host, and what is known of it.
type node struct {
	phase    phase
	hello    frame.Hello
	copying  bool           // gorun is being copied there
	lastSeen time.Time      // the last sign of life; at first, when the connection began
	outcome  *frame.Outcome // nil: none
	spared   bool           // it has left, and the job has gone on without it
}

// stateMachine decides what a launcher does. It has no clock, goroutine, I/O or logger.
type stateMachine struct {
	rules     Rules
	least     int // how many hosts the job needs now: gorun scale changes that
	nodes     []node
	endpoints []int          // hosts at which the nodes meet; nil: not known yet
	order     []int          // hosts that have an outcome, in the order in which they had
	missed    []int          // hosts that have left since there were enough: the nodes say whether the job ends
	failure   *Failure       // why the launcher has ended the job; nil: it has not
	interrupt syscall.Signal // the first one; 0: none
	signals   int            // how many came
	stopping  bool           // the job is being ended

	stopAt time.Time // when the hosts are told to stop; zero: never
	killAt time.Time // when they are told to kill; zero: never
	dropAt time.Time // when they are given up; zero: never
}

// The events. All come with the time.
type (
	event interface{}

	// said: the proxy of a host is there.
	said struct {
		host  int
		hello frame.Hello
	}
	// alive: a host has given a sign of life.
	alive struct{ host int }
	// copying: gorun is being copied to a host, or is not any more.
	copying struct {
		host int
		now  bool
	}
	// scaled: a host says how many hosts the job needs from now on.
	scaled struct{ host, least int }
	// finished: the job has ended on a host.
	finished struct {
		host    int
		outcome frame.Outcome
	}
	// lost: the connection to a host has ended, or was never made.
	lost struct {
		host int
		why  *Failure
	}
	// interrupted: a signal came that ends the job.
	interrupted struct{ sig syscall.Signal }
	// signalled: a signal came that is for the workers.
	signalled struct{ sig syscall.Signal }
	// elapsed: the time of the last deadline has come.
	elapsed struct{}
)

// The actions.
type (
	action interface{}

	// start sends the job to a host.
	start struct{ host int }
	// signal sends a signal to the job on a host.
	signal struct {
		host int
		sig  syscall.Signal
	}
	// kill ends the job on a host at once.
	kill struct{ host int }
	// drop ends the connection to a host.
	drop struct{ host int }
	// warn tells the user something.
	warn struct{ text string }
)

// A Failure is why the launcher itself ends a job.
type Failure struct {
	Host string // as the user has written it
	Step string // what was being done, such as "connecting"
	Text string // what happened, and what to do
	Code int    // exit code
}

// Error is one line.
func (f *Failure) Error() string { return fmt.Sprintf("host %s: %s: %s", f.Host, f.Step, f.Text) }

// newStateMachine returns the state when all connections have been begun.
func newStateMachine(rules Rules, now time.Time) *stateMachine {
	m := &stateMachine{rules: rules, least: rules.Least, nodes: make([]node, len(rules.Hosts))}
	for i := range m.nodes {
		m.nodes[i].lastSeen = now
	}
	return m
}

// count returns how many hosts are in a phase for which want is true.
func (m *stateMachine) count(want func(phase) bool) (n int) {
	for i := range m.nodes {
		if want(m.nodes[i].phase) {
			n++
		}
	}
	return n
}

func isAlive(p phase) bool { return p != ended }

// deadline returns when elapsed is due; zero: never.
func (m *stateMachine) deadline() (first time.Time) {
	earlier := func(t time.Time) {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	for i := range m.nodes {
		switch n := &m.nodes[i]; n.phase {
		case connecting:
			earlier(n.lastSeen.Add(m.rules.Connect))
		case running:
			earlier(n.lastSeen.Add(m.rules.Silence))
		case ready, ended:
		}
	}
	earlier(m.stopAt)
	earlier(m.killAt)
	earlier(m.dropAt)
	return first
}
