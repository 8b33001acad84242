package cli

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

const backendStatic = "static"

// backends are the names of the ways in which nodes meet, torchrun's and gorun's. All but static use an etcd and version 3
// of its API. A single node meets nobody, whatever the name.
var backends = []string{backendStatic, "c10d", "etcd", "etcd-v2", "etcd-v3", "embedded"}

// hosted reports whether one of the nodes hosts the etcd; otherwise it runs by itself.
func (o *flags) hosted() bool { return o.backend == "embedded" || o.backend == "c10d" }

// defaultPort is torchrun's port, for several nodes that have no other way to agree on one.
const defaultPort = 29500

// elastic reports whether the job's nodes meet over etcd.
func (o *flags) elastic() bool { return o.nnodes > 1 && o.backend != backendStatic }

// completeRendezvous checks that the flags of the rendezvous are compatible, and sets what follows from them.
func (o *options) completeRendezvous() error {
	if o.standalone {
		if o.nnodes > 1 {
			return usagef("%s: --standalone is for one node", o.given["nnodes"])
		}
		o.applyStandalone()
	}
	if _, given := o.given["node-rank"]; !given {
		o.nodeRank = o.conf.number(o.nodeRank, "rank")
	}
	if o.nodeRank >= o.nnodes+o.spares {
		from := o.given["node-rank"]
		if from == "" {
			from = o.given["rdzv-conf"]
		}
		if o.spares > 0 {
			return usagef("%s: node ranks are 0 to %d, since --nnodes is %d and --spares is %d", from, o.nnodes+o.spares-1, o.nnodes, o.spares)
		}
		return usagef("%s: node ranks are 0 to %d, since --nnodes is %d", from, o.nnodes-1, o.nnodes)
	}
	if o.spares > 0 && !o.elastic() {
		return usagef("%s: a spare needs other nodes, and an etcd over which they meet, as with --nnodes=2 --rdzv-backend=embedded --rdzv-endpoint=node0:%d",
			o.given["spares"], rendezvous.EmbeddedPort)
	}
	switch {
	case o.elastic():
		return o.completeElastic()
	case o.minNodes < o.nnodes:
		return usagef("%s: a range needs an etcd over which the nodes meet, as with --rdzv-backend=embedded --rdzv-endpoint=node0:%d", o.given["nnodes"], rendezvous.EmbeddedPort)
	}
	master, err := o.resolveMaster()
	if err != nil {
		return err
	}
	o.master = master
	if o.nnodes == 1 {
		return o.completeLocal()
	}
	return o.completeStatic()
}

// resolveMaster returns the master's address. For static nodes, the endpoint is that address.
func (o *flags) resolveMaster() (rendezvous.Master, error) {
	m := rendezvous.Master{Addr: o.masterAddr, Port: o.masterPort}
	if o.endpoint == "" || o.backend != backendStatic {
		return m, nil
	}
	host, port := o.endpoint, "0"
	if h, p, err := net.SplitHostPort(o.endpoint); err == nil {
		host, port = h, p
	}
	wrong := func(what string) error { return usagef("%s: want host:port%s", o.given["rdzv-endpoint"], what) }
	var err error
	if m.Addr, err = hostName(host); err != nil {
		return m, wrong("")
	}
	if m.Port, err = number(port, 0, maxPort); err != nil {
		return m, wrong(fmt.Sprintf(", with a port from 0 to %d", maxPort))
	}
	return m, nil
}

// completeLocal completes the options of a single node. It meets nobody, so the endpoint matters only if it is the master's
// address.
func (o *options) completeLocal() error {
	if o.backend != backendStatic && o.endpoint != "" {
		if err := o.checkAsTorchrun(); err != nil {
			return err
		}
	}
	if o.master.Addr == "" {
		o.master.Addr = o.localAddr
	}
	if o.runID == "" {
		o.runID = randomID()
	}
	return nil
}

// checkAsTorchrun accepts the endpoints that torchrun accepts, even with port 0, which means any port. A single node does not use
// the endpoint.
func (o *options) checkAsTorchrun() error {
	static := *o
	static.backend = backendStatic
	if _, err := static.resolveMaster(); err == nil {
		return nil
	}
	return o.parseEndpoints(o.endpointPort())
}

func (o *options) completeStatic() error {
	if o.master.Addr == "" {
		return usagef("%s: where is node 0? Give every node the same address, as in --master-addr=node0 --master-port=%d", o.given["nnodes"], defaultPort)
	}
	if !o.isSet("node-rank") && o.conf["rank"] == "" {
		return o.missingNodeRank()
	}
	if o.master.Port == 0 {
		o.master.Port = defaultPort
	}
	if o.runID == "" {
		o.runID = "none"
	}
	return nil
}

// missingNodeRank says what to write. Torchrun takes 0: then every node is node 0, and runs without the others.
func (o *options) missingNodeRank() error {
	last := o.nnodes - 1
	if o.endpoint != "" && !o.isSet("rdzv-backend") {
		return usagef("%s: how do the nodes meet at %s? Write --rdzv-backend=embedded, or c10d as torchrun calls it; or number the nodes yourself, with --node-rank=0 to %d",
			o.given["nnodes"], o.endpoint, last)
	}
	return usagef("%s: which node is this? Static nodes do not meet, so number them, with --node-rank=0 on %s to --node-rank=%d", o.given["nnodes"], o.master.Addr, last)
}

// applyStandalone drops the options that --standalone overrides, as torchrun does.
func (o *options) applyStandalone() {
	for _, name := range []string{"rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf"} {
		if _, given := o.given[name]; given {
			o.overridden = append(o.overridden, "--"+name)
		}
	}
	o.backend, o.endpoint, o.runID, o.conf = backendStatic, "", "", nil
}

// parseEndpoints parses the endpoints of etcd's members. port is the default.
func (o *options) parseEndpoints(port int) (err error) {
	if o.endpoints, err = rendezvous.ParseEndpoints(o.endpoint, port); err != nil {
		return usagef("%s: %w", o.given["rdzv-endpoint"], err)
	}
	if n := len(o.endpoints); o.hosted() && n != 1 && n != 3 {
		return usagef("%s: %d endpoints: want one, or three of which any one may fail", o.given["rdzv-endpoint"], n)
	}
	return nil
}

// endpointPort returns the default port of an endpoint.
func (o *flags) endpointPort() int {
	if o.hosted() {
		return rendezvous.EmbeddedPort
	}
	return rendezvous.EtcdPort
}

// onlyHere reports whether static nodes on other machines cannot reach node 0. Where gorun launch has chosen its address, all are on this one.
func (o *options) onlyHere() bool {
	return o.nnodes > 1 && !o.elastic() && !o.host.launched && network.IsLoopback(o.master.Addr)
}

// exposed reports whether other machines may reach an endpoint.
func (o *options) exposed() bool {
	return slices.ContainsFunc(o.endpoints, func(e rendezvous.Endpoint) bool { return !e.IsLoopback() })
}

// meetingPoint is where the nodes of the job meet; empty: it has one node.
func (o *options) meetingPoint() string {
	switch {
	case o.elastic():
		var list []string
		for _, e := range o.endpoints {
			list = append(list, e.String())
		}
		return strings.Join(list, ",")
	case o.nnodes > 1:
		return rendezvous.Endpoint{Host: o.master.Addr, Port: o.master.Port}.String()
	default:
		return ""
	}
}

func (o *options) node() rendezvous.Node {
	host := network.Hostname()
	id := fmt.Sprintf("%s/%d", host, os.Getpid())
	if o.localAddr != "" && !o.elastic() {
		host = o.localAddr
	}
	return rendezvous.Node{
		ID: id, Host: host, Addr: o.localAddr, NodeRank: o.nodeRank, Nproc: o.nproc, Role: o.role,
		StopTimeout: launcher.StopTimeout(o.grace),
	}
}
