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

	"github.com/gorun/gorun/launcher/guard"
	"github.com/gorun/gorun/rendezvous"
)

const aboutEtcd = "The etcd serves any number of jobs, until SIGTERM ends it. A job uses it by --rdzv-backend=etcd, with the same --rdzv-endpoint " +
	"and --rdzv-token-file. If you start it on three machines, with the same three endpoints, any one of the machines may die."

const etcdExamples = `# on node0, with a secret that you copy to every node
(umask 077; openssl rand -hex 32 >token)
gorun etcd --rdzv-endpoint=node0 --rdzv-token-file=token
# a job of two nodes that meet there: this on each of them
gorun --nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=node0 --rdzv-token-file=token --rdzv-id=job1 ./train`

// etcdCommand is gorun etcd: an etcd such as an agent would host, which outlives jobs.
func etcdCommand(etcd Etcd) *cobra.Command {
	var endpoint, tokenFile, conf, dir string
	cmd := &cobra.Command{
		Use: "etcd", Short: "Host an etcd where the nodes of jobs meet", Long: aboutEtcd, Example: etcdExamples,
		Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := hostedOptions(endpoint, tokenFile, conf)
			if err != nil {
				return err
			}
			std := newStdio(os.Stdout, os.Stderr) // it serves whether or not somebody reads what it says
			logger, err := newLogger(std.err)
			if err != nil {
				return err
			}
			own, err := o.loopbackToken()
			if err != nil {
				return err
			}
			if own != "" {
				logger.Info("no token was given: jobs of this user get in by --rdzv-token-file=" + own)
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
	flags.StringVar(&endpoint, "rdzv-endpoint", "", "address at which it listens: `HOST:PORT` of this machine, or three separated by commas, of which one is this machine's (port 2379)")
	flags.StringVar(&tokenFile, "rdzv-token-file", "", "`FILE` with the secret of all nodes ($GORUN_TOKEN; on loopback a file that gorun makes for you)")
	flags.StringVar(&conf, "rdzv-conf", "", "settings, as `K=V,...`: ca_cert, ssl_cert and ssl_cert_key instead of a secret; is_host=true if something between translates the endpoint's address to this machine's")
	flags.StringVar(&dir, "data-dir", "", "`DIR` in which it keeps its data for the next time (a temporary one)")
	_ = cmd.RegisterFlagCompletionFunc("data-dir", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)) // there is such a flag
	for _, name := range []string{"rdzv-endpoint", "rdzv-conf"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

// serveTemporarily hosts an etcd with its data in a temporary directory, which goes with this process, however that ends.
func serveTemporarily(ctx context.Context, etcd Etcd, a rendezvous.Access, logger *slog.Logger) (err error) {
	temp, err := newScratch("etcd")
	if err != nil {
		return err
	}
	cleaner, err := guard.Keep(temp.dir)
	if err != nil {
		return errors.Join(err, temp.close(false))
	}
	defer func() {
		cleaner.Close()
		err = errors.Join(err, temp.close(false))
	}()
	return etcd.Serve(ctx, a, filepath.Join(temp.dir, "data"), logger)
}

// hostedOptions reads the flags of gorun etcd as those of a node are read.
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
		return nil, usagef("%s: gorun etcd hosts an etcd; leave is_host out", o.given["rdzv-conf"])
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
