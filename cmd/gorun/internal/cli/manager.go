package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/rendezvous"
)

// An inferredFlag is a flag that the user has not given, and that follows from what a resource manager says.
type inferredFlag struct {
	Flag   string `json:"flag"`   // --name=value
	Source string `json:"source"` // variables, or what else it follows from
}

// inferred has the flags that follow from what a resource manager says.
type inferred struct {
	Manager string         `json:"manager"` // and its job, such as Slurm step 17.0
	Flags   []inferredFlag `json:"flags"`
	Token   string         `json:"token,omitempty"` // how the nodes get one; empty: as without a manager

	meeting bool // the flags say where the nodes meet
}

// text is one line.
func (i *inferred) text() string {
	var b strings.Builder
	b.WriteString(i.Manager + ":")
	for _, f := range i.Flags {
		fmt.Fprintf(&b, " %s (%s)", f.Flag, f.Source)
	}
	if i.Token != "" {
		b.WriteString("; token: " + i.Token)
	}
	return b.String()
}

// infer sets a flag that the user has not given, or, of --rdzv-conf, a key.
func (o *options) infer(name, value, source string) error {
	shown := "--" + name + "=" + quote(value)
	if !o.isSet(name) {
		o.given[name] = shown + " (" + source + ")"
	}
	o.inferred.Flags = append(o.inferred.Flags, inferredFlag{shown, source})
	if err := flagNamed(name).set(&o.flags, value); err != nil {
		return usagef("%s: %w", o.given[name], err)
	}
	return nil
}

// askManager sets the flags that follow from what the resource manager says, and that the user has not given. If the user has said
// that there is one node, or how many there are and where they meet, the manager does not matter.
func (o *options) askManager() error {
	nodesGiven, meetingGiven := o.isSet("nnodes"), o.isSet("rdzv-endpoint") || o.isSet("master-addr")
	if o.standalone || nodesGiven && o.nnodes == 1 || o.host.launched {
		return nil
	}
	task, err := manager.Find(o.host.lookup)
	switch {
	case err != nil && meetingGiven:
		return nil
	case err != nil:
		return usagef("%w; to run on this node alone, add --standalone", err)
	case task == nil:
		return nil
	}
	o.task = task
	switch {
	case meetingGiven && (task.Script || !task.IsAlone() || !nodesGiven && task.Nodes == 0):
		return nil // the user knows better
	case task.Script:
		return o.checkScript()
	case !task.IsAlone():
		return usagef("%s has started several gorun on this node: want one for each node, as in %s gorun --nproc-per-node=%d ...; if each is a job of its own, add --standalone",
			task, task.OnePerNode(task.Nodes), max(task.LocalSize, 1)*o.nproc)
	}
	o.inferred = &inferred{Manager: task.String()}
	err = o.inferNodes(nodesGiven, meetingGiven)
	switch {
	case err != nil || o.nnodes == 1:
		return err
	case meetingGiven:
		o.noteMeeting()
		return nil
	}
	return o.inferMeeting()
}

// noteMeeting says on one node that the resource manager knows what torchrun needs to be told.
func (o *options) noteMeeting() {
	if t := o.task; t.Node == 0 && t.Nodes == o.nnodes+o.spares && len(t.Hosts) > 0 && o.hosted() {
		o.notes = append(o.notes, t.Name+" says where the nodes meet: you can leave out --rdzv-endpoint, --rdzv-backend and --rdzv-id")
	}
}

func (o *flags) isSet(name string) bool { _, given := o.given[name]; return given }

// checkScript refuses to run a job of several nodes on the first of them.
func (o *options) checkScript() error {
	t := o.task
	if t.JobNodes > 1 && t.Interactive && o.nnodes == 1 {
		o.notes = append(o.notes, fmt.Sprintf("this shell is on the first of %d nodes, and the job will run there only; for all of them, write %s gorun ...",
			t.JobNodes, t.OnePerNode(t.JobNodes)))
		return nil
	}
	if nodes := max(t.JobNodes, o.nnodes); nodes > 1 {
		return usagef("%s has %d nodes (%s), and without %s gorun would run on one of them: write %s gorun ...; to run on one node, add --nnodes=1",
			t, t.JobNodes, t.Sources.Nodes, t.Starts, t.OnePerNode(t.JobNodes))
	}
	return nil
}

// inferNodes sets how many nodes there are, which one this is, and the name of the job. If the user says where the nodes meet, other
// steps may meet there too, so that the rank and the name count only if this step is all of the job.
func (o *options) inferNodes(nodesGiven, meetingGiven bool) error {
	t := o.task
	switch {
	case !nodesGiven && t.Nodes == 0:
		return usagef("%w", t.Uncounted())
	case !nodesGiven && t.Nodes > 1 && o.spares >= t.Nodes:
		return usagef("%s: %s has %d nodes (%s), so that none would run workers", o.given["spares"], t, t.Nodes, t.Sources.Nodes)
	case !nodesGiven && t.Nodes > 1:
		if err := o.infer("nnodes", strconv.Itoa(t.Nodes-o.spares), t.Sources.Nodes); err != nil {
			return err
		}
	case !nodesGiven:
	case t.Nodes > 0 && (t.Nodes < o.minNodes || t.Nodes > o.nnodes+o.spares) && !meetingGiven:
		return usagef("%s: %s has %d (%s): leave out --nnodes, or say where nodes of other steps meet, with --rdzv-endpoint", o.given["nnodes"], t, t.Nodes, t.Sources.Nodes)
	case t.Node >= o.nnodes+o.spares && !meetingGiven:
		return usagef("%s: %s says that this is node %d, counted from 0 (%s)", o.given["nnodes"], t.Name, t.Node, t.Sources.Node)
	case meetingGiven && t.Nodes != o.nnodes:
		return nil
	}
	if o.nnodes > 1 && !o.isSet("node-rank") && o.conf["rank"] == "" {
		if err := o.infer("node-rank", strconv.Itoa(t.Node), t.Sources.Node); err != nil {
			return err
		}
	}
	if o.isSet("rdzv-id") || t.Sources.ID == "" || nodesGiven && meetingGiven {
		return nil
	}
	return o.infer("rdzv-id", t.ID, t.Sources.ID)
}

// inferMeeting sets where the nodes meet: on the first node, or on the first three.
func (o *options) inferMeeting() error {
	if !o.isSet("rdzv-backend") {
		if err := o.infer("rdzv-backend", "embedded", "the default for several nodes of "+o.task.Name); err != nil {
			return err
		}
	}
	if o.backend != backendStatic && !o.hosted() {
		return nil // the user has an etcd; where, completeElastic asks
	}
	m, err := o.task.Meet(min(3, o.nnodes), manager.Machine{Hostname: o.host.hostname, Root: o.host.root})
	if err != nil {
		return usagef("%w", err)
	}
	if m.Job != "" && !o.isSet("rdzv-id") {
		if err := o.infer("rdzv-id", m.Job, m.JobSource); err != nil {
			return err
		}
	}
	source, port := m.HostSource, m.Port
	if port == 0 {
		port = rendezvous.EmbeddedPort
	} else {
		source += "; the port from " + m.PortSource
	}
	if o.backend == backendStatic {
		if !o.isSet("master-port") {
			if err := o.infer("master-port", strconv.Itoa(port+manager.MasterPort), cmp.Or(m.PortSource, source)); err != nil {
				return err
			}
		}
		return o.infer("master-addr", m.Hosts[0], m.HostSource)
	}
	if len(m.Hosts) < 3 {
		m.Hosts = m.Hosts[:1]
	}
	if o.conf.hosts() == nil {
		if err := o.infer("rdzv-conf", "is_host="+strconv.FormatBool(o.task.Node < len(m.Hosts)), o.task.Sources.Node); err != nil {
			return err
		}
	}
	for i, h := range m.Hosts {
		m.Hosts[i] = rendezvous.Endpoint{Host: h, Port: port}.String()
	}
	o.inferred.meeting = true
	return o.infer("rdzv-endpoint", strings.Join(m.Hosts, ","), source)
}

// note logs what the resource manager has said, once for the job.
func (o *options) note(logger *slog.Logger) {
	for _, text := range o.notes {
		logger.Info(text)
	}
	if o.inferred == nil || len(o.inferred.Flags) == 0 {
		return
	}
	level := slog.LevelDebug
	if o.nnodes > 1 && o.task.Node == 0 {
		level = slog.LevelInfo
	}
	logger.Log(context.Background(), level, o.inferred.text())
}
