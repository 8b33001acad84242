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

	"github.com/gorun/gorun/cmd/gorun/internal/scratch"
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
func etcdCommand(here host, etcd Etcd) *cobra.Command {
	var dir string
	hosting := func(f *flag) string { return f.hosting }
	line := newCommandLine(func(f *flag) bool { return f.hosting != "" })
	cmd := &cobra.Command{
		Use: "etcd [flags]", DisableFlagsInUseLine: true, Short: "Host an etcd over which the nodes of jobs meet", Long: aboutEtcd, Example: etcdExamples,
		Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := hostedOptions(line.values(here.lookup), here)
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
	cmd.Flags().SortFlags = false
	line.add(cmd, hosting)
	ownFlag(cmd, "data-dir", "", "DIR", "directory where the etcd keeps its data until the next start (default: a temporary directory)",
		func(text string) error { dir = text; return nil })
	return cmd
}

// serveTemporarily hosts an etcd with its data in a temporary directory, which is removed however this process ends.
func serveTemporarily(ctx context.Context, etcd Etcd, a rendezvous.Access, logger *slog.Logger) (err error) {
	temp, err := scratch.New("etcd", logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Close(false)) }()
	if err := temp.Keep(); err != nil {
		return err
	}
	return etcd.Serve(ctx, a, filepath.Join(temp.Path, "data"), logger)
}

// hostedOptions reads the flags of gorun etcd in the same way as those of a node.
func hostedOptions(v values, here host) (*options, error) {
	o, err := v.parse(here)
	if err != nil {
		return nil, err
	}
	o.backend = "embedded"
	if o.endpoint == "" {
		return nil, usagef("want an address of this machine, as in --rdzv-endpoint=node0:%d", rendezvous.EtcdPort)
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
