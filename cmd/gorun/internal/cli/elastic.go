package cli

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/job"
	"github.com/gorun/gorun/rendezvous"
)

// Etcd is what gorun does with etcd. The interface keeps etcd's hundreds of packages out of package cli.
type Etcd interface {
	job.Etcd
	// Serve hosts an etcd at an endpoint of this machine until ctx ends, with its data in dir.
	Serve(ctx context.Context, a rendezvous.Access, dir string, logger *slog.Logger) error
}

// completeElastic checks the options of nodes that meet over etcd: they must know where it is and the name of their job.
func (o *options) completeElastic() error {
	backend := o.given["rdzv-backend"]
	if o.endpoint == "" {
		return usagef("%s: where do the nodes meet? Give every node the same endpoint, as in --rdzv-endpoint=node0:%d", backend, o.endpointPort())
	}
	if err := o.parseEndpoints(o.endpointPort()); err != nil {
		return err
	}
	if o.runID == "" {
		if !o.hosted() {
			return usagef("%s: an etcd may serve many jobs: give this one the same name on every node, as in --rdzv-id=train17", backend)
		}
		o.runID = "none" // torchrun's
	}
	if strings.Contains(o.runID, "/") {
		return usagef("%s: want a name without a slash", o.given["rdzv-id"])
	}
	if _, given := o.given["node-rank"]; !given && o.conf["rank"] == "" {
		o.nodeRank = -1
	}
	if o.nodeRank >= o.nnodes { // a spare takes any place that becomes free
		o.nodeRank = -1
	}
	return o.checkAccess()
}

func (o *options) checkAccess() error {
	c, from := o.conf, o.given["rdzv-conf"]
	files := 0
	for _, name := range []string{"ca_cert", "ssl_cert", "ssl_cert_key"} {
		if c[name] != "" {
			files++
		}
	}
	switch {
	case (c["ssl_cert"] == "") != (c["ssl_cert_key"] == ""):
		return usagef("%s: give both ssl_cert and ssl_cert_key, or neither", from)
	case files > 0 && strings.EqualFold(c["protocol"], "http"):
		return usagef("%s: certificates need protocol=https", from)
	case (c["username"] == "") != (c["password_file"] == ""):
		return usagef("%s: give both username and password_file, or neither", from)
	case files > 0 && o.tokenFile != "":
		return usagef("%s and %s: use a token or certificates, not both", o.given["rdzv-token-file"], from)
	case o.workerTLS && !o.hosted() && !o.encrypted():
		return usagef("%s: the workers' secret would be sent unencrypted, given %s: use --rdzv-conf=protocol=https, or gorun etcd with a token",
			o.given["worker-tls"], o.given["rdzv-endpoint"])
	case !o.hosted():
		return nil
	case c["protocol"] != "":
		return usagef("%s: gorun chooses the protocol of an etcd that it hosts; leave out protocol", from)
	case strings.EqualFold(c["store_type"], "file"):
		return usagef("%s: nodes meet over the network; leave out store_type", from)
	case c["username"] != "":
		return usagef("%s: an etcd that gorun hosts has no users; use --rdzv-token-file", from)
	case files > 0 && files < 3:
		return usagef("%s: want all of ca_cert, ssl_cert and ssl_cert_key, or none", from)
	case files == 0 && o.token == "" && o.exposed():
		return o.missingToken()
	}
	return nil
}

func (o *options) access() rendezvous.Access {
	a := rendezvous.Access{
		Looks: o.outside, Hosted: o.hosted(), Hosts: o.conf.hosts(), Endpoints: o.endpoints,
		CA: o.path(o.conf["ca_cert"]), Cert: o.path(o.conf["ssl_cert"]), Key: o.path(o.conf["ssl_cert_key"]),
		User: o.conf["username"], PasswordFile: o.path(o.conf["password_file"]),
	}
	a.TLS = a.CA != "" || a.Cert != "" || strings.EqualFold(o.conf["protocol"], "https")
	if a.Cert == "" && (a.Hosted || o.tokenFile != "") { // one that runs by itself may be gorun etcd
		a.Secret = o.token
	}
	return a
}

// encrypted reports whether all traffic to and from the etcd is encrypted.
func (o *options) encrypted() bool {
	a := o.access()
	return a.TLS || a.Secret != "" || o.usesMunge()
}

// etcdConfig returns the rendezvous of nodes that meet over etcd.
func (o *options) etcdConfig() rendezvous.Config {
	return rendezvous.Config{
		Access: o.access(), RunID: o.runID, Prefix: o.conf.prefix(),
		Rules: rendezvous.Rules{
			Min: o.minNodes, Max: o.nnodes, MaxRestarts: o.maxRestarts, Lease: o.conf.ttl(), JoinTimeout: o.joinTimeout(),
			LastCall: o.conf.seconds(30*time.Second, "last_call_timeout"), ScaleUp: rendezvous.ScaleUp(o.scaleUp),
		},
		MasterPort:  o.masterPort,
		EndAsOthers: strings.EqualFold(o.conf["after_end"], "result"),
		Successive:  o.inferred != nil && o.inferred.meeting,
		Settings: map[string]string{
			"gorun": version, "worker_tls": strconv.FormatBool(o.workerTLS), "on_failure": o.onFailure, "hang_timeout": o.hangTimeout.String(),
		},
	}
}

// joinTimeout is how long a node waits for other nodes and for the etcd.
func (o *flags) joinTimeout() time.Duration {
	return o.conf.seconds(10*time.Minute, "join_timeout", "timeout")
}

var scaleUps = []string{string(rendezvous.ScaleImmediate), string(rendezvous.ScaleOnRestart), string(rendezvous.ScaleNever)}
