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
		if s.network, err = hosts.New(); err != nil {
			return err
		}
	}
	var endpoints []string
	for i := range s.job.members() {
		at, err := s.reserve(i)
		if err != nil {
			return err
		}
		endpoints = append(endpoints, at)
	}
	s.endpoints = strings.Join(endpoints, ",")
	return nil
}

// reserve returns where a member of etcd listens.
func (s *testbed) reserve(member int) (string, error) {
	switch {
	case s.network != nil && s.job.etcd > 0:
		return hosts.Addr(etcdHost(member)) + ":2379", nil
	case s.network != nil:
		return hosts.Addr(member) + ":2379", nil
	}
	first, next, err := network.ReservePortPair("127.0.0.1")
	if err != nil {
		return "", err
	}
	s.ports = append(s.ports, first, next)
	return fmt.Sprint("127.0.0.1:", first.Number()), nil
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
