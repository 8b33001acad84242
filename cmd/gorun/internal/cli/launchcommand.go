package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/hostfile"
	"github.com/gorun/gorun/cmd/gorun/internal/launch"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/rendezvous"
)

const aboutLaunch = "gorun launch starts gorun on every host over ssh, with the flags that make one job of them, and carries output, stdin, signals and the " +
	"exit code. ssh must log in without a password. All of gorun's flags are for the job; gorun launch itself gives each node --nnodes, --node-rank, " +
	"--nproc-per-node, the rendezvous and a random token. Without --hosts and --hostfile, it takes the hosts of a PBS, LSF or Grid Engine job. " +
	"docs/launch.md in gorun's repository says more."

const launchExamples = `# 8 workers on each of two hosts
gorun launch --hosts a:8,b:8 ./train
# 4 workers on each of the hosts n01 to n16; the job survives the loss of any four of them
gorun launch --hosts n[01-16] --nproc-per-node=4 --nnodes=12:16 ./train
# the hosts of a file, to which gorun copies itself
gorun launch --hostfile hosts --copy train.py --epochs 3`

// launchFlags are the flags of gorun launch that gorun itself does not have.
type launchFlags struct {
	hosts, hostfile, rsh, remotePath string
	copies                           bool
	connect, heartbeat               time.Duration
}

const defaultShell = "ssh"

// launchCommand is gorun launch: a job on several hosts, over ssh.
func launchCommand(here host, stdout, stderr *os.File) *cobra.Command {
	here.launched = true
	f := launchFlags{rsh: defaultShell, connect: 30 * time.Second, heartbeat: 30 * time.Second}
	cmd := &cobra.Command{
		Use: "launch [flags] program [args...]", DisableFlagsInUseLine: true, Short: "Run a job on several hosts, over ssh", Long: aboutLaunch, Example: launchExamples,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false) // what follows the program is the program's
	own := func(name, value, help string, set func(string) error) { ownFlag(cmd, name, "", value, help, set) }
	own("hosts", "HOST,...", "hosts, each with its number of workers, as in a:8,b:8; n[01-16]:8 stands for 16 hosts, and user@a for another user's login. "+
		"A host without a number has that of --nproc-per-node", setTo(&f.hosts, notEmpty))
	flags.VarPF(setter{"FILE", setTo(&f.hostfile, notEmpty)}, "hostfile", "", "file with a host in each line, in the form of Open MPI, MPICH or DeepSpeed")
	own("rsh", "COMMAND", "command that runs another on a host, as ssh does (default ssh)", setTo(&f.rsh, notEmpty))
	own("remote-path", "PATH", "where gorun is on the hosts (default: where it is here)", setTo(&f.remotePath, remotePath))
	own("copy", "", "copy this gorun to ~/.cache/gorun on hosts that do not have it there, and run that one", setTo(&f.copies, parseSwitch))
	own("connect-timeout", "SECONDS", "how long a host may take to answer (default 30)", setTo(&f.connect, atLeastASecond))
	own("heartbeat-timeout", "SECONDS", "after how long without a sign of life a host is lost, or, for a host, gorun launch (default 30)", setTo(&f.heartbeat, atLeastASecond))
	line := newCommandLine(nil)
	line.add(cmd, func(f *flag) string { return f.launch })
	cmd.Flag("node-rank").Hidden = true // refused
	cmd.RunE = func(cmd *cobra.Command, command []string) error {
		l, err := newLaunchPlan(here, f, line.values(here.lookup), withoutDashes(cmd, command), os.Environ())
		if err != nil {
			return err
		}
		if l.options.dryRun {
			d, err := l.document()
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), l.options.json, d, d.text)
		}
		c, err := l.config()
		if err != nil {
			return err
		}
		if err := c.Check(); err != nil {
			return &usageError{err}
		}
		return runLaunch(cmd.Context(), c, l, stdout, stderr)
	}
	return cmd
}

func notEmpty(text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", errors.New("want a value that is not empty")
	}
	return text, nil
}

func remotePath(text string) (string, error) { return text, launch.CheckPath(text) }

func atLeastASecond(text string) (time.Duration, error) {
	d, err := toSeconds(text)
	if err == nil && d < time.Second {
		err = errors.New("want a number of seconds of at least 1")
	}
	return d, err
}

// findHosts returns the hosts, and where they come from.
func findHosts(f launchFlags, lookup func(string) (string, bool)) (list []manager.Host, source string, err error) {
	switch {
	case f.hosts != "" && f.hostfile != "":
		return nil, "", usagef("--hosts and --hostfile: leave out one of them")
	case f.hosts != "":
		source = "--hosts=" + quote(f.hosts)
		list, err = hostfile.ParseList(f.hosts)
	case f.hostfile != "":
		source = "--hostfile=" + quote(f.hostfile)
		list, err = readHosts(f.hostfile)
	default:
		var variable, value string
		list, variable, value, err = manager.HostsOfJob(lookup)
		source = variable + "=" + quote(value)
		if variable == "" {
			return nil, "", usagef("no hosts: name them, as in --hosts a:8,b:8 or --hostfile FILE")
		}
	}
	if err != nil {
		return nil, "", usagef("%s: %w", source, err)
	}
	return list, source, nil
}

func readHosts(name string) ([]manager.Host, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read it: %w", agent.Bare(err))
	}
	defer func() { _ = file.Close() }() // it was only read
	return hostfile.Parse(name, file)
}

// runLaunch launches a job.
func runLaunch(ctx context.Context, c launch.Config, l *launchPlan, stdout, stderr *os.File) error {
	s, err := begin(l.options, l.command, launchedNode{}, stdout, stderr)
	if err != nil {
		return err
	}
	c.Stdin, c.Stdout, c.Stderr = l.options.input(), s.std.out, s.std.err
	c.Interrupts, c.Signals = s.interrupts.Passed, s.forwarded
	c.Warn = func(text string) { s.logger.Warn(text) }
	removeRecord := func() {}
	c.Begin = func(endpoints []rendezvous.Endpoint) {
		if remove, err := l.leaveRecord(c.IsSelf, endpoints); err != nil {
			s.logger.Warn("gorun status on this machine will not find this job: it has no record", "error", err)
		} else {
			removeRecord = remove
		}
	}
	err = launchError(launch.Run(ctx, c))
	removeRecord()
	return s.finish(err)
}

// A launchedError is how a launched job has failed.
type launchedError struct{ launch.Result }

func (e *launchedError) Error() string { return strings.TrimSpace(e.Text) }

// launchError returns a result as an error.
func launchError(r launch.Result) error {
	switch {
	case r.Code == 0:
		return nil
	case r.Signal != 0:
		return &agent.InterruptError{Signal: r.Signal, Killed: r.Killed}
	default:
		return &launchedError{r}
	}
}
