package cli

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// Etcd is what gorun does with etcd. Package cli does without its packages, of which there are hundreds.
type Etcd interface {
	// Rendezvous returns the rendezvous that flags describe. It does not wait for anything.
	Rendezvous(rendezvous.Config) rendezvous.Rendezvous
	// Serve hosts an etcd at an endpoint of this machine until ctx ends, with its data in dir.
	Serve(ctx context.Context, a rendezvous.Access, dir string, logger *slog.Logger) error
}

// completeElastic: nodes that meet over etcd must know where it is, and what they call their job.
func (o *options) completeElastic() error {
	backend := o.given["rdzv-backend"]
	if o.endpoint == "" {
		return usagef("%s: where do the nodes meet? Say it on every node, as in --rdzv-endpoint=node0:%d", backend, o.endpointPort())
	}
	if err := o.parseEndpoints(o.endpointPort()); err != nil {
		return err
	}
	if o.runID == "" {
		if !o.hosted() {
			return usagef("%s: an etcd may have many jobs: name this one, on every node alike, as in --rdzv-id=train17", backend)
		}
		o.runID = "none" // torchrun's
	}
	if strings.Contains(o.runID, "/") || len(o.runID) > maxRunID {
		return usagef("%s: want a name of at most %d bytes, without a slash", o.given["rdzv-id"], maxRunID)
	}
	if _, given := o.given["node-rank"]; !given && o.conf["rank"] == "" {
		o.nodeRank = -1
	}
	return o.checkAccess()
}

const maxRunID = 128

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
		return usagef("%s: ssl_cert and ssl_cert_key go together", from)
	case files > 0 && strings.EqualFold(c["protocol"], "http"):
		return usagef("%s: certificates are for protocol=https", from)
	case (c["username"] == "") != (c["password_file"] == ""):
		return usagef("%s: username and password_file go together", from)
	case files > 0 && o.tokenFile != "":
		return usagef("%s and %s: nodes know each other by a token or by certificates; leave one out", o.given["rdzv-token-file"], from)
	case o.workerTLS && !o.hosted() && !o.encrypted():
		return usagef("%s: the workers' secret would travel unencrypted by %s: use --rdzv-conf=protocol=https, or gorun etcd with a token",
			o.given["worker-tls"], o.given["rdzv-endpoint"])
	case !o.hosted():
		return nil
	case c["protocol"] != "":
		return usagef("%s: an etcd that gorun hosts uses TLS where there is a token or certificates; leave protocol out", from)
	case strings.EqualFold(c["store_type"], "file"):
		return usagef("%s: nodes meet over the network; leave store_type out", from)
	case c["username"] != "":
		return usagef("%s: an etcd that gorun hosts has no users; nodes know each other by --rdzv-token-file", from)
	case files > 0 && files < 3:
		return usagef("%s: want all of ca_cert, ssl_cert and ssl_cert_key, or none", from)
	case files == 0 && o.token == "" && o.exposed():
		return usagef("%s: whoever reaches it could start programs: give every node the same secret, as in --rdzv-token-file=token (umask 077; openssl rand -hex 32 >token)",
			o.given["rdzv-endpoint"])
	}
	return nil
}

func (o *options) access() rendezvous.Access {
	a := rendezvous.Access{
		Hosted: o.hosted(), Hosts: o.conf.hosts(), Endpoints: o.endpoints,
		CA: o.conf["ca_cert"], Cert: o.conf["ssl_cert"], Key: o.conf["ssl_cert_key"],
		User: o.conf["username"], PasswordFile: o.conf["password_file"],
	}
	a.TLS = a.CA != "" || a.Cert != "" || strings.EqualFold(o.conf["protocol"], "https")
	if a.Cert == "" && (a.Hosted || o.tokenFile != "") { // one that runs by itself may be gorun etcd
		a.Secret = o.token
	}
	return a
}

// encrypted reports whether all that goes to and from the etcd is.
func (o *options) encrypted() bool {
	a := o.access()
	return a.TLS || a.Secret != ""
}

func (o *options) elasticConfig(tempDir string, logger *slog.Logger) rendezvous.Config {
	return rendezvous.Config{
		Access: o.access(), RunID: o.runID, Prefix: o.conf.prefix(), TempDir: tempDir,
		Rules: rendezvous.Rules{
			Min: o.minNodes, Max: o.nnodes, MaxRestarts: o.maxRestarts, Lease: o.conf.ttl(), JoinTimeout: o.joinTimeout(),
			LastCall: o.conf.seconds(30*time.Second, "last_call_timeout"), ScaleUp: rendezvous.ScaleUp(o.scaleUp),
		},
		MasterPort:  o.masterPort,
		EndAsOthers: strings.EqualFold(o.conf["after_end"], "result"),
		Settings:    map[string]string{"gorun": version, "worker_tls": strconv.FormatBool(o.workerTLS)},
		Reserve:     reserve, Waiting: newWaiting(logger).set, ExitCode: exitCode, Logger: logger,
	}
}

// joinTimeout is how long nodes, and where they meet, are waited for.
func (o *options) joinTimeout() time.Duration {
	return o.conf.seconds(10*time.Minute, "join_timeout", "timeout")
}

var scaleUps = []string{string(rendezvous.ScaleImmediate), string(rendezvous.ScaleOnRestart), string(rendezvous.ScaleNever)}
