package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gorun/gorun/rendezvous"
)

const aboutEtcd = "The etcd serves any number of jobs until it gets SIGTERM. To use it, start a job with --rdzv-backend=etcd and the same " +
	"--rdzv-endpoint and --rdzv-token-file. If you start it on three machines with the same three endpoints, any one of them may die."

const etcdExamples = `# on node0, with a secret that you copy to every node
(umask 077; openssl rand -hex 32 >token)
gorun etcd --rdzv-endpoint=node0 --rdzv-token-file=token
# a job of two nodes that meet there: run this on each of them
gorun --nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=node0 --rdzv-token-file=token --rdzv-id=job1 ./train`

// etcdCommand is gorun etcd: an etcd like one that an agent hosts, but it outlives jobs.
func etcdCommand(etcd Etcd) *cobra.Command {
	var endpoint, tokenFile, conf, dir string
	cmd := &cobra.Command{
		Use: "etcd [flags]", DisableFlagsInUseLine: true, Short: "Host an etcd over which the nodes of jobs meet", Long: aboutEtcd, Example: etcdExamples,
		Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := hostedOptions(endpoint, tokenFile, conf)
			if err != nil {
				return err
			}
			std := newStdio(os.Stdout, os.Stderr) // it serves whether or not somebody reads what it says
			logger, err := newLogger(std.err, "", std.color)
			if err != nil {
				return err
			}
			own, err := o.loopbackToken()
			if err != nil {
				return err
			}
			if own != "" {
				logger.Info("no token was given: jobs of this user can use --rdzv-token-file=" + own)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			defer stop()
			if dir == "" {
				err = serveTemporarily(ctx, etcd, o.access(), logger)
			} else {
				err = etcd.Serve(ctx, o.access(), dir, logger)
			}
			return std.finish(err, afterInterrupt, nil)
		},
	}
	flags := cmd.Flags()
	flags.SetNormalizeFunc(normalize)
	flags.SortFlags = false
	for _, f := range []struct {
		name, value, help string
		text              *string
	}{
		{"rdzv-endpoint", "HOST:PORT", "address of this machine at which the etcd listens, or three addresses, separated by commas, one of which is this machine's (default port 2379)", &endpoint},
		{"rdzv-token-file", "FILE", "file with the secret of all nodes (default: $GORUN_TOKEN; on loopback, a file that gorun creates for you)", &tokenFile},
		{"rdzv-conf", "K=V,...", "settings: ca_cert, ssl_cert and ssl_cert_key instead of a secret; is_host=true if address translation leads from the endpoint to this machine", &conf},
		{"data-dir", "DIR", "directory where the etcd keeps its data until the next start (default: a temporary directory)", &dir},
	} {
		flags.VarPF(setter{f.value, func(text string) error { *f.text = text; return nil }}, f.name, "", f.help)
	}
	_ = cmd.RegisterFlagCompletionFunc("data-dir", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)) // the flag exists
	for _, name := range []string{"rdzv-endpoint", "rdzv-conf"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

// serveTemporarily hosts an etcd with its data in a temporary directory, which is removed however this process ends.
func serveTemporarily(ctx context.Context, etcd Etcd, a rendezvous.Access, logger *slog.Logger) (err error) {
	temp, err := newScratch("etcd", logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.close(false)) }()
	if err := temp.keep(); err != nil {
		return err
	}
	return etcd.Serve(ctx, a, filepath.Join(temp.dir, "data"), logger)
}

// hostedOptions reads the flags of gorun etcd in the same way as those of a node.
func hostedOptions(endpoint, tokenFile, conf string) (*options, error) {
	o := defaults(host{})
	o.backend = "embedded"
	o.token = os.Getenv("GORUN_TOKEN")
	for _, f := range []struct {
		name, text string
		set        func(*options, string) error
	}{
		{"rdzv-endpoint", endpoint, setEndpoint},
		{"rdzv-token-file", tokenFile, func(o *options, s string) error { o.tokenFile = s; return nil }},
		{"rdzv-conf", conf, setConf},
	} {
		o.given[f.name] = "--" + f.name + "=" + quote(f.text)
		if err := f.set(o, f.text); err != nil {
			return nil, usagef("%s: %w", o.given[f.name], err)
		}
	}
	if endpoint == "" {
		return nil, usagef("gorun etcd: want an address of this machine, as in --rdzv-endpoint=node0:%d", rendezvous.EtcdPort)
	}
	if hosts := o.conf.hosts(); hosts != nil && !*hosts {
		return nil, usagef("%s: gorun etcd always hosts an etcd; leave out is_host", o.given["rdzv-conf"])
	}
	if err := o.loadToken(); err != nil {
		return nil, err
	}
	if err := o.parseEndpoints(rendezvous.EtcdPort); err != nil {
		return nil, err
	}
	if err := o.checkAccess(); err != nil {
		return nil, err
	}
	return o, nil
}
