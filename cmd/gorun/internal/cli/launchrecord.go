package cli

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/cmd/gorun/internal/jobs"
	"github.com/gorun/gorun/rendezvous"
)

// confFiles are the keys of --rdzv-conf whose values are files.
var confFiles = []string{"ca_cert", "ssl_cert", "ssl_cert_key", "password_file"}

// record returns how the job's agents can be reached from here. It returns nil if the job needs no record: static nodes do not meet, and agents
// on this machine have sockets. isSelf says, by host, which of them are on this machine. endpoints are where the nodes meet; nil: where the
// user has said.
func (l *launchPlan) record(isSelf []bool, endpoints []rendezvous.Endpoint) (*control.Record, error) {
	o := *l.options
	if !o.elastic() || !slices.Contains(isSelf, false) {
		return nil, nil
	}
	if endpoints != nil { // the options have a placeholder
		o.endpoints = endpoints
	}
	r := &control.Record{Job: l.runID, Backend: o.backend, Endpoint: o.meetingPoint(), Conf: maps.Clone(o.conf)}
	var err error
	for _, name := range confFiles {
		if file := r.Conf[name]; file != "" && err == nil {
			r.Conf[name], err = filepath.Abs(o.path(file))
		}
	}
	switch {
	case err != nil:
	case o.hosted(): // the token may be a random one
		r.Token = o.access().Secret
	case o.tokenFile != "":
		r.TokenFile, err = filepath.Abs(o.tokenFile)
	}
	return r, err
}

// leaveRecord writes the record of a job, if it needs one, for commands on this machine. remove removes it.
func (l *launchPlan) leaveRecord(isSelf []bool, endpoints []rendezvous.Endpoint) (remove func(), err error) {
	r, err := l.record(isSelf, endpoints)
	if r == nil || err != nil {
		return func() {}, err
	}
	return control.WriteRecord(*r)
}

// askLaunched asks the agents of a job that gorun launch has started from here.
func askLaunched(ctx context.Context, here host, etcd Etcd, r *control.Record) (*status.Job, []jobs.Agent, error) {
	o := &options{flags: *defaults(here)}
	o.runID, o.backend, o.endpoint, o.conf, o.token, o.tokenFile = r.Job, r.Backend, r.Endpoint, r.Conf, r.Token, r.TokenFile
	// for errors:
	o.given["rdzv-endpoint"], o.given["rdzv-token-file"] = "--rdzv-endpoint="+quote(r.Endpoint), "--rdzv-token-file="+quote(r.TokenFile)
	job, agents, err := o.askElsewhere(ctx, etcd)
	if isUnreachable(err) {
		err = usagef("job %s: %w; if it has just begun, try again; if this machine does not reach that address, run the command on a host of the job", quote(r.Job), err)
	}
	return job, agents, err
}
