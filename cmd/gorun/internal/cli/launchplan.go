package cli

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gorun/gorun/cmd/gorun/internal/launch"
	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
)

// A launchPlan is a job that is to be launched.
type launchPlan struct {
	flags   launchFlags
	hosts   []manager.Host
	options *options // of a node, as far as they are known here
	given   []string // flags that all nodes get as the user gave them
	nproc   string   // of a host without slots; empty: not given
	backend string   // by which the nodes meet; empty: there is one node, and no other can join
	several bool     // there are several hosts, or --nnodes allows more nodes than there are now
	meets   bool     // they meet at endpoints that gorun launch chooses
	runID   string
	token   string   // empty: none
	dir     string   // of the workers
	environ []string // of gorun on the hosts, "name=value"
	command []string
}

// newLaunchPlan works out what to launch. It only reads.
func newLaunchPlan(here host, f launchFlags, all values, command, environ []string) (*launchPlan, error) {
	if len(command) == 0 || command[0] == "" {
		return nil, usagef("no program to run: give one, as in gorun launch --hosts a:8,b:8 ./train --epochs=3")
	}
	hosts, source, err := findHosts(f, here.lookup)
	if err != nil {
		return nil, err
	}
	l := &launchPlan{flags: f, hosts: hosts, command: command, environ: launch.Environ(environ)}
	if rank := all["node-rank"]; rank.from == "--node-rank" {
		return nil, usagef("--node-rank=%s: gorun launch numbers the nodes, in the order of the hosts", quote(rank.texts[0]))
	}
	l.nproc = all.text("nproc-per-node")
	if err := l.checkNodes(here, all, source); err != nil {
		return nil, err
	}
	if l.options, err = l.nodeOptions(here, all); err != nil {
		return nil, err
	}
	o := l.options
	if l.dir, err = os.Getwd(); err != nil {
		return nil, err
	}
	l.passOn(all)
	if l.runID = o.runID; o.given["rdzv-id"] == "" || l.runID == "" {
		l.runID = "launch-" + randomID()
	}
	l.token = o.token
	return l, nil
}

// checkNodes checks that --nnodes, if it is given, fits the number of hosts.
func (l *launchPlan) checkNodes(here host, all values, source string) error {
	o, err := values{"nnodes": all["nnodes"], "spares": all["spares"]}.parse(here)
	if err != nil {
		return err
	}
	l.several = len(l.hosts) > 1 || o.nnodes > 1
	n := len(l.hosts) - o.spares
	switch {
	case n <= 0 && l.several:
		return usagef("%s: there are %d hosts, so that none would run workers", o.given["spares"], len(l.hosts))
	case !all.has("nnodes"), o.minNodes <= n && n <= o.nnodes:
		return nil
	}
	spares := ""
	if o.spares > 0 {
		spares = " without --spares"
	}
	return usagef("%s and %s: want as many nodes as there are hosts%s, which is %d, or a range", o.given["nnodes"], source, spares, n)
}

// passOn sets what all nodes get as the user gave it: flags, variables, and the directory of the workers. Files are
// those of the hosts. A relative --log-dir or --wdir begins at the current directory of this machine.
func (l *launchPlan) passOn(all values) {
	o := l.options
	sendsToken := !l.several || o.hosted() || o.backend == backendStatic // and so not the name of its file
	for i := range table {
		name, g := table[i].name, all[table[i].name]
		if table[i].perNode || g.from != "--"+name || name == "rdzv-token-file" && sendsToken {
			continue
		}
		for _, text := range g.texts {
			if name == "log-dir" && text != "" && !filepath.IsAbs(text) {
				text = filepath.Join(l.dir, text)
			}
			l.given = append(l.given, g.from+"="+text)
		}
	}
	l.environ = append(l.environ, o.variables...)
	if o.workDir != "" {
		if !filepath.IsAbs(o.workDir) {
			o.workDir = filepath.Join(l.dir, o.workDir)
		}
		l.dir = o.workDir
	}
}

// nodeOptions checks the flags of the nodes as far as that can be done here: only the hosts know their devices and
// addresses.
func (l *launchPlan) nodeOptions(here host, all values) (*options, error) {
	v := maps.Clone(all)
	delete(v, "local-addr")
	if slices.Contains(procKinds, l.nproc) {
		delete(v, "nproc-per-node")
	}
	if l.several {
		here.lookup = withToken(here.lookup, auth.NewSecret())
		spares, _ := strconv.Atoi(all.text("spares")) // checked
		v.orElse("nnodes", strconv.Itoa(len(l.hosts)-spares))
		v.orElse("node-rank", "0") // of the first
		if all.has("master-addr") {
			v.orElse("rdzv-backend", backendStatic)
		}
		v.orElse("rdzv-backend", "embedded")
		l.backend = v.text("rdzv-backend")
		l.meets = !all.has("rdzv-endpoint") && !all.has("master-addr") && slices.Contains([]string{backendStatic, "embedded", "c10d"}, l.backend)
		switch { // this stands for what the hosts will say
		case l.meets && l.backend == backendStatic:
			v.orElse("master-addr", "127.0.0.1")
		case l.meets:
			v.orElse("rdzv-endpoint", "127.0.0.1")
		}
	}
	return v.options(here)
}

// withToken returns a lookup that finds this token if there is no other.
func withToken(lookup func(string) (string, bool), token string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := lookup(name)
		if name == "GORUN_TOKEN" && value == "" {
			return token, true
		}
		return value, ok
	}
}

// nodeArgs returns gorun's arguments on a host. endpoints are where the nodes meet.
func (l *launchPlan) nodeArgs(i int, endpoints []rendezvous.Endpoint) []string {
	args := []string{"--nnodes=" + l.nnodes()}
	if nproc := l.nprocOf(i); nproc != "" {
		args = append(args, "--nproc-per-node="+nproc)
	}
	if l.several {
		args = append(args, "--node-rank="+strconv.Itoa(i), "--rdzv-backend="+l.backend, "--rdzv-id="+l.runID)
	}
	switch {
	case len(endpoints) == 0:
	case l.backend == backendStatic:
		args = append(args, "--master-addr="+endpoints[0].Host, "--master-port="+strconv.Itoa(endpoints[0].Port))
	default:
		var list []string
		for _, e := range endpoints {
			list = append(list, e.String())
		}
		args = append(args, "--rdzv-endpoint="+strings.Join(list, ","), "--rdzv-conf=after_end=result") // no other job meets there
	}
	args = append(args, l.given...)
	return append(append(args, "--"), l.command...)
}

// nnodes is the number of nodes, or the range, as --nnodes has it.
func (l *launchPlan) nnodes() string {
	if o := l.options; o.minNodes < o.nnodes {
		return strconv.Itoa(o.minNodes) + ":" + strconv.Itoa(o.nnodes)
	}
	return strconv.Itoa(len(l.hosts) - l.options.spares)
}

// nprocOf is the number of workers of a host; empty: gorun's default.
func (l *launchPlan) nprocOf(i int) string {
	if slots := l.hosts[i].Slots; slots > 0 {
		return strconv.Itoa(slots)
	}
	return l.nproc
}

// job is what a host gets.
func (l *launchPlan) job(i int, endpoints []rendezvous.Endpoint) frame.Job {
	job := frame.Job{Dir: []byte(l.dir)}
	for _, arg := range append([]string{l.hosts[i].Name}, l.nodeArgs(i, endpoints)...) {
		job.Args = append(job.Args, []byte(arg))
	}
	for _, kv := range l.environ {
		job.Env = append(job.Env, []byte(kv))
	}
	if l.token != "" {
		job.Env = append(job.Env, []byte("GORUN_TOKEN="+l.token))
	}
	return job
}

// config is how the job is launched.
func (l *launchPlan) config() (launch.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return launch.Config{}, err
	}
	o := l.options
	c := launch.Config{
		Rules: launch.Rules{
			Hosts: l.hosts, Least: o.minNodes, Meets: l.meets, Shared: l.backend != backendStatic,
			Connect: l.flags.connect, Silence: l.flags.heartbeat, Grace: o.grace,
		},
		Shell: launch.Shell{Words: strings.Fields(l.flags.rsh), Connect: l.flags.connect},
		Path:  l.flags.remotePath, Version: version, Self: self, Job: l.job,
	}
	names, remote := []string{"localhost", "127.0.0.1", "::1", network.Hostname()}, false
	for _, h := range l.hosts {
		isSelf := l.flags.rsh == defaultShell && h.User == "" && slices.Contains(names, h.Name)
		remote = remote || !isSelf
		c.IsSelf = append(c.IsSelf, isSelf)
	}
	if !remote {
		return c, nil
	}
	switch {
	case l.flags.copies:
		if c.Copy, err = launch.NewCopy(version, self); err != nil {
			return c, err
		}
		c.Path = c.Copy.Path
	case c.Path == "":
		c.Path = self
		if launch.CheckPath(self) != nil {
			err = usagef("gorun is at %s here, which a shell on a host would read in another way: say where it is there with --remote-path, or use --copy", quote(self))
		}
	}
	return c, err
}
