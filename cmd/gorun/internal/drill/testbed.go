package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/hosts"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/network"
)

// A testbed is the agents, etcds and network of a scenario. It acts on them, and tells the observer what they do.
type testbed struct {
	*events
	seen      *observer
	options   Options
	job       job
	policy    Policy
	dir       string // everything is in here
	ports     []*network.Port
	endpoints string
	memory    *memoryGroup     // for a worker; nil: no worker's memory is bounded
	network   *hosts.Network   // nil: all are on the network of this process
	agents    map[int]*process // by node, and the newcomer
	etcds     map[int]*process
	errors    []string // the error files that agents keep, since the summary of a failure names them
}

// temp is for the temporary files of agents and workers.
func (s *testbed) temp() string { return filepath.Join(s.dir, "tmp") }

// socket is where workers report.
func (s *testbed) socket() string { return filepath.Join(s.dir, "socket") }

// tokenFile holds the secret, which jobs on a network need.
func (s *testbed) tokenFile() string { return filepath.Join(s.dir, "token") }

func newTestbed(o Options, j job, p Policy, dir string, seen *observer) (*testbed, error) {
	s := &testbed{
		events: newEvents(), seen: seen, options: o, job: j, policy: p, dir: dir, agents: make(map[int]*process), etcds: make(map[int]*process),
	}
	if err := s.prepare(); err != nil {
		s.clear(context.Background())
		return nil, err
	}
	return s, nil
}

// prepare makes what the processes need.
func (s *testbed) prepare() (err error) {
	if err := os.Mkdir(s.temp(), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, torchWorker), torchProgram, 0o600); err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	if s.job.memory {
		if s.memory, err = newMemoryGroup(); err != nil {
			return err
		}
	}
	if s.job.disk {
		if err := s.setDisk(); err != nil {
			return err
		}
	}
	if s.job.network {
		if err := os.WriteFile(s.tokenFile(), []byte(auth.NewSecret()), 0o600); err != nil {
			return err
		}
		at := upTo(0, s.job.members())
		for i := range s.job.etcd {
			at[i] = etcdHost(i)
		}
		var endpoints []string
		for _, host := range at {
			endpoints = append(endpoints, hosts.Addr(host)+":2379")
		}
		s.endpoints = strings.Join(endpoints, ",")
		s.network, err = hosts.New()
		return err
	}
	var endpoints []string
	for range s.job.members() {
		first, next, err := network.ReservePortPair("127.0.0.1")
		if err != nil {
			return err
		}
		s.ports = append(s.ports, first, next)
		endpoints = append(endpoints, fmt.Sprint("127.0.0.1:", first.Number()))
	}
	s.endpoints = strings.Join(endpoints, ",")
	return nil
}

// afterSignal is what an agent or an etcd is after a signal, unless that ends it.
var afterSignal = map[syscall.Signal]State{syscall.SIGSTOP: Suspended, syscall.SIGCONT: Running}

// signal sends a signal to a process. It knows which signals may end it.
func (s *testbed) signal(p *process, sig syscall.Signal) error {
	if sig == syscall.SIGKILL || sig == syscall.SIGTERM {
		p.mayEnd = true
	}
	p.asked = p.asked || sig == syscall.SIGTERM
	if state, ok := afterSignal[sig]; ok {
		p.become(time.Now(), state)
	}
	return p.cmd.Process.Signal(sig)
}

// mark records the state of the process on a host, if there is one.
func (s *testbed) mark(host int, state State) {
	p := s.agents[host]
	if host < 0 {
		p = s.etcds[etcdHost(host)]
	}
	if p != nil && !p.ended {
		p.become(time.Now(), state)
	}
}

// An unavailableError says what this machine lacks for a scenario.
type unavailableError struct{ why string }

func (e *unavailableError) Error() string { return e.why }
