package drill

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// etcdHost returns the number of the host of a member of etcd. Nodes have numbers from 0.
func etcdHost(member int) int { return -1 - member }

// A process is an agent or an etcd.
type process struct {
	name      string
	cmd       *exec.Cmd
	console   *console // nil: its output goes to a file
	announced bool     // it hosts an etcd, or waits as a spare, and has said so
	mayEnd    bool     // the drill has ended it, or it is to end by itself
	asked     bool     // to end: it got SIGTERM
	failure   string   // the last line in which it has said why it fails; empty: it has not
	track     *Track
	ended     bool
}

// running returns the processes that have not ended and are not meant to.
func running(group map[int]*process) (list []*process) {
	for _, p := range group {
		if !p.ended && !p.mayEnd {
			list = append(list, p)
		}
	}
	return list
}

// startAgent starts the agent of a node.
func (s *testbed) startAgent(node int) error {
	p, err := s.startNode(fmt.Sprint("node", node), node, s.options.Gorun)
	if err == nil {
		s.agents[node] = p
	}
	return err
}

// startNode starts an agent, on a host of the network if there is one. Its workers run program.
func (s *testbed) startNode(name string, node int, program string) (*process, error) {
	return s.start(name, node, s.agentArgs(node, program))
}

// startEtcd starts or restarts a member of etcd.
func (s *testbed) startEtcd(member int) error {
	name := fmt.Sprint("etcd", member)
	p, err := s.start(name, etcdHost(member), s.etcdArgs(member))
	if err == nil {
		s.etcds[member] = p
	}
	return err
}

func (s *testbed) dataDir(member int) string { return filepath.Join(s.dir, fmt.Sprint("etcd", member)) }

// start starts gorun, on a host of the network if there is one. Its output goes to a file, or, if nobody is to read it, to a pipe.
func (s *testbed) start(name string, host int, args []string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(s.dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: exec.Command(s.options.Gorun, args...), track: s.trackOf(host)}
	p.cmd.Dir, p.cmd.Env = s.dir, s.environ()
	file := &logFile{to: log, fail: func(err error) { s.post(func(time.Time) { s.seen.fail(err) }) }}
	stderr := &agentLog{own: file, workers: &boundedLog{file, maxWorkerLog}, line: func(line []byte) { s.read(p, host, line) }}
	stdout := &lineWatcher{&boundedLog{file, maxWorkerLog}, func() {}}
	if s.options.Program != nil && host >= 0 {
		stdout.found = func() { s.post(func(at time.Time) { s.seen.wrote(at) }) }
	}
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	if s.isUnread(host) {
		if p.console, err = newConsole(); err != nil {
			_ = log.Close()
			return nil, err
		}
		p.cmd.Stdout, p.cmd.Stderr = p.console.writer, p.console.writer
	}
	setApart(p.cmd)
	if err = s.confine(p.cmd, host); err == nil && s.network != nil {
		err = s.network.Start(p.cmd, host)
	} else if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		_ = log.Close()
		p.console.close()
		return nil, err
	}
	p.become(time.Now(), Running)
	s.others.Go(func() {
		_ = p.cmd.Wait() // cmd.ProcessState says how it has ended
		stderr.flush()
		_ = log.Close()
		s.post(func(at time.Time) { s.end(at, p) })
	})
	return p, nil
}

// end records the end of a process.
func (s *testbed) end(at time.Time, p *process) {
	p.become(at, "")
	p.ended = true
	if !p.mayEnd {
		why := p.failure
		if s.options.Program != nil && p.cmd.ProcessState.Success() {
			why = ": the program must run until the fault is over"
		}
		s.seen.fail(fmt.Errorf("%s has ended: %v%s", p.name, p.cmd.ProcessState, why))
	}
}

// trackOf is the track of a host in the timeline.
func (s *testbed) trackOf(host int) *Track {
	if host < 0 {
		return s.seen.timeline.find(Track{Name: fmt.Sprint("etcd ", etcdHost(host))})
	}
	return s.seen.timeline.find(Track{Node: &host})
}

// become records what the process is now.
func (p *process) become(at time.Time, state State) {
	p.track.set(at, Span{State: state, Pid: p.cmd.Process.Pid})
}

// confine starts the last node with a small disk for its log files, if the job says so.
func (s *testbed) confine(cmd *exec.Cmd, host int) error {
	if !s.isFull(host) {
		return nil
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		return err
	}
	cmd.Path, cmd.Args = sh, append([]string{"sh", "-c", mountShell + ` && shift && exec "$@"`, "sh", s.logDir(), cmd.Path}, cmd.Args[1:]...)
	return setMounts(cmd)
}

// environ returns the environment of this process, without variables that are meant for the user's jobs.
func (s *testbed) environ() (environ []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PET_") && !strings.HasPrefix(v, "GORUN_") || strings.HasPrefix(v, "GORUN_LIBRARY=") {
			environ = append(environ, v)
		}
	}
	return append(environ, "LOGLEVEL=debug", "OMP_NUM_THREADS=1", "TMPDIR="+s.temp())
}
