package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/clustertest"
	"github.com/gorun/gorun/env/testing/testkit"
)

// signalLog is a worker that writes which signals it gets, and from whom: its guard, or somebody else. It ends $1 seconds after SIGTERM.
const signalLog = `
import os, signal, sys
caught = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]
signal.pthread_sigmask(signal.SIG_BLOCK, caught)
guard = os.getppid()
print('ready', os.environ['TORCHELASTIC_RUN_ID'], flush=True)
wait = None
while True:
    got = signal.sigwaitinfo(caught) if wait is None else signal.sigtimedwait(caught, wait)
    if got is None:
        sys.exit(0)
    print(signal.Signals(got.si_signo).name, 'from its guard' if got.si_pid == guard else 'from elsewhere', flush=True)
    if got.si_signo != signal.SIGUSR1:
        wait = float(sys.argv[1])
`

// A slurmJob is a running srun or salloc on the login node of a cluster.
type slurmJob struct {
	t              *testing.T
	cluster        *clustertest.Slurm
	name           string
	cmd            *exec.Cmd
	stdout, stderr testkit.Log
}

// startSlurm starts srun with gorun and two workers on each node, and returns when all of them are ready.
func startSlurm(t *testing.T, c *clustertest.Slurm, nodes int, srun, gorun []string, worker ...string) *slurmJob {
	t.Helper()
	j := &slurmJob{t: t, cluster: c, name: strings.ReplaceAll(t.Name(), "/", "-")}
	args := slices.Concat([]string{"--job-name=" + j.name, fmt.Sprint("--nodes=", nodes), "--ntasks-per-node=1"}, srun, []string{"gorun", "--nproc-per-node=2"}, gorun, worker)
	j.cmd = c.Command("srun", args...)
	j.cmd.Env = append(j.cmd.Env, raceExitsAtOnce, "OMP_NUM_THREADS=1", "GORUN_TOKEN=0123456789abcdef0123456789abcdef")
	j.cmd.Stdout, j.cmd.Stderr = &j.stdout, &j.stderr
	if err := c.Login.Start(j.cmd); err != nil {
		t.Fatal(err)
	}
	j.await("ready", 2*nodes)
	return j
}

// await waits until the workers have written a text so often. Output of srun does not come in lines, but in pieces.
func (j *slurmJob) await(text string, times int) {
	j.t.Helper()
	for deadline := time.Now().Add(time.Minute); strings.Count(j.stdout.String(), text) < times; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			j.t.Fatalf("%q has not come %d times:\n%s\n%s", text, times, j.stdout.String(), j.stderr.String())
		}
	}
}

// scancel runs scancel for this job.
func (j *slurmJob) scancel(flags ...string) {
	j.t.Helper()
	j.cluster.Run(j.t, "scancel", append(flags, "--name="+j.name)...)
}

// end waits for srun, and wants an exit code, and texts on stderr.
func (j *slurmJob) end(code int, stderr ...string) {
	j.t.Helper()
	err := j.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || code != j.cmd.ProcessState.ExitCode() {
		j.t.Errorf("srun: %v (%v), want %d", err, exit, code)
	}
	for _, want := range stderr {
		if !regexp.MustCompile(want).MatchString(j.stderr.String()) {
			j.t.Errorf("stderr lacks %q", want)
		}
	}
	if j.t.Failed() {
		j.t.Logf("stdout:\n%s\nstderr:\n%s", j.stdout.String(), j.stderr.String())
	}
}

// wantSignals wants every worker to have got these signals, each once, and none from its guard.
func (j *slurmJob) wantSignals(workers int, names ...string) {
	j.t.Helper()
	said := j.stdout.String()
	if strings.Contains(said, "from its guard") {
		j.t.Errorf("gorun tells workers what they know:\n%s", said)
	}
	for _, name := range names {
		if n := strings.Count(said, name+" from elsewhere"); n != workers {
			j.t.Errorf("%s came %d times, want %d:\n%s", name, n, workers, said)
		}
	}
}

// TestSlurmSignals: what Slurm sends, gorun does not repeat; it ends before Slurm kills it, and says how.
func TestSlurmSignals(t *testing.T) {
	t.Parallel()
	c := clustertest.StartSlurm(t, clustertest.SlurmConfig{Nodes: 2, KillWait: 6 * time.Second})
	logger := filepath.Join(t.TempDir(), "signals.py")
	if err := os.WriteFile(logger, []byte(signalLog), 0o600); err != nil {
		t.Fatal(err)
	}
	const stopping = `\[WARN\]  gorun: signal 15 \(SIGTERM\): stopping 2 workers, and killing what has not ended in `
	t.Run("scancel", func(t *testing.T) {
		t.Parallel()
		j := startSlurm(t, c, 2, nil, nil, "python3", logger, "600")
		begun := time.Now()
		j.scancel()
		j.end(143, stopping+`3s \(gorun itself is killed after 6s: Slurm's KillWait\)\. Another signal kills at once\n`,
			`gorun: stopped by signal 15 \(SIGTERM\); 2 workers did not stop by themselves and were killed\n`)
		j.wantSignals(4, "SIGTERM")
		if took := time.Since(begun); took < 3*time.Second {
			t.Errorf("the workers had %v", took)
		}
	})
	t.Run("time limit", func(t *testing.T) {
		t.Parallel()
		testkit.Nightly(t, "Slurm looks every 30 s for jobs whose time is up")
		j := startSlurm(t, c, 1, []string{"--time=10"}, nil, "python3", logger, "1")
		id := c.Run(t, "squeue", "--noheader", "--format=%A", "--name="+j.name)
		c.Run(t, "scontrol", "update", "JobId="+id, "EndTime=now+1")
		j.end(0, stopping, `DUE TO TIME LIMIT`)
		if said := j.stdout.String(); strings.Count(said, "SIGTERM from elsewhere") < 2 || strings.Contains(said, "from its guard") {
			t.Errorf("the workers say %q", said)
		}
		if said := j.stderr.String(); strings.Contains(said, ": killing") {
			t.Errorf("the second SIGTERM is not the first:\n%s", said)
		}
	})
	t.Run("workers that do not handle it", func(t *testing.T) {
		t.Parallel()
		j := startSlurm(t, c, 1, nil, []string{"--max-restarts=5"}, "sh", "-c", "echo ready; exec sleep 600")
		j.scancel()
		j.end(143, `gorun: stopped by signal 15 \(SIGTERM\)\n`)
		if said := j.stderr.String(); strings.Contains(said, "FAILED") || strings.Contains(said, "failed (") {
			t.Errorf("it counts as a failure:\n%s", said)
		}
	})
	t.Run("USR1, and one's own time to stop", func(t *testing.T) {
		t.Parallel()
		j := startSlurm(t, c, 1, nil, []string{"--shutdown-timeout=6"}, "python3", logger, "0.2")
		j.scancel("--signal=USR1")
		j.await("SIGUSR1", 2)
		j.scancel()
		j.end(0, stopping+`6s \(--shutdown-timeout=6 is not below the time after which gorun itself is killed, 6s \(Slurm's KillWait\): then it cannot say how the workers ended\)`)
		j.wantSignals(2, "SIGUSR1", "SIGTERM")
	})
	t.Run("Ctrl-C twice", func(t *testing.T) {
		t.Parallel()
		j := startSlurm(t, c, 2, nil, nil, "python3", logger, "600")
		for range 2 { // srun does not pass on the first
			if err := j.cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond) // or the kernel makes them one
		}
		j.end(137, `sending Ctrl-C`)
		// They are killed right after it: on a busy machine some say nothing more.
		if said := j.stdout.String(); strings.Contains(said, "from its guard") || !strings.Contains(said, "SIGINT from elsewhere") || strings.Count(said, "SIGINT") > 4 {
			t.Errorf("want one SIGINT for each worker, or for some of the four:\n%s", said)
		}
	})
}

// TestSlurmSignalsTasks: if Slurm signals only the tasks that it has started, gorun passes the signals on.
func TestSlurmSignalsTasks(t *testing.T) {
	t.Parallel()
	c := clustertest.StartSlurm(t, clustertest.SlurmConfig{Nodes: 1, ProctrackType: "proctrack/pgid"})
	logger := filepath.Join(t.TempDir(), "signals.py")
	if err := os.WriteFile(logger, []byte(signalLog), 0o600); err != nil {
		t.Fatal(err)
	}
	j := startSlurm(t, c, 1, nil, nil, "python3", logger, "0.2")
	j.scancel("--signal=USR1")
	j.await("SIGUSR1", 2)
	j.scancel()
	j.end(0, `stopping 2 workers, and killing what has not ended in 25s`)
	for _, name := range []string{"SIGUSR1", "SIGTERM"} {
		if said := j.stdout.String(); strings.Count(said, name+" from its guard") != 2 || strings.Count(said, name) != 2 {
			t.Errorf("want %s twice, from the guard:\n%s", name, said)
		}
	}
}

// TestSlurmRequeue: a job that Slurm puts back in the queue ends in time, and comes back as another job of gorun, whose nodes do not meet
// those of the first.
func TestSlurmRequeue(t *testing.T) {
	t.Parallel()
	c := clustertest.StartSlurm(t, clustertest.SlurmConfig{Nodes: 2, KillWait: 4 * time.Second})
	dir := t.TempDir()
	logger, batch, output := filepath.Join(dir, "signals.py"), filepath.Join(dir, "batch"), filepath.Join(dir, "output")
	for file, text := range map[string]string{
		logger: signalLog,
		batch: "#!/bin/sh\n#SBATCH --nodes=2 --ntasks-per-node=1 --requeue --open-mode=append --output=" + output + "\n" +
			"export GORUN_TOKEN=0123456789abcdef0123456789abcdef\nsrun gorun python3 " + logger + " 0.1; echo ended $?\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	id := c.Run(t, "sbatch", "--parsable", batch)
	await := func(text string, times int) { t.Helper(); awaitOutput(t, output, text, times) }
	await("ready "+id+".0\n", 2)
	c.Run(t, "scontrol", "requeue", id)
	await("SIGTERM from elsewhere", 2)
	c.AwaitJob(t, id, "PENDING")
	c.Run(t, "scontrol", "update", "JobId="+id, "StartTime=now+2") // Slurm would let it wait for two minutes; a node does not start again what it was told to kill in the same second
	await("ready "+id+".0.1\n", 2)
	c.Run(t, "scancel", id)
	await("SIGTERM from elsewhere", 4)
}

// TestSlurmBatchFiles: the files that docs/clusters has to copy, with one worker on each node.
func TestSlurmBatchFiles(t *testing.T) {
	t.Parallel()
	testkit.Nightly(t, "Slurm takes about ten seconds to see that a node is lost")
	dir := t.TempDir()
	const program = `
import os, signal, sys, time
def save(*_):
    print('saved', flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print('one of', os.environ['WORLD_SIZE'], 'in', os.environ['TORCHELASTIC_RUN_ID'], flush=True)
while not os.path.exists('release'):
    time.sleep(0.05)
`
	if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	c := clustertest.StartSlurm(t, clustertest.SlurmConfig{Nodes: 4, KillWait: 4 * time.Second, NodeTimeout: 2 * time.Second})
	submit := func(name string) (id string, await func(text string, times int)) {
		t.Helper()
		text, err := os.ReadFile("../../docs/clusters/" + name)
		if err != nil {
			t.Fatal(err)
		}
		batch, output := filepath.Join(dir, name), filepath.Join(dir, name+".output")
		if err := os.WriteFile(batch, []byte(strings.ReplaceAll(string(text), "--nproc-per-node=8", "--nproc-per-node=1")), 0o600); err != nil {
			t.Fatal(err)
		}
		id = c.Run(t, "env", "GORUN_TOKEN=0123456789abcdef0123456789abcdef", "sbatch", "--parsable", "--chdir="+dir, "--output="+output, batch)
		return id, func(text string, times int) { t.Helper(); awaitOutput(t, output, text, times) }
	}

	id, await := submit("slurm-elastic.sh")
	await("one of 4 in "+id+".0\n", 4)
	c.Nodes[3].Cut()
	c.Nodes[3].Kill()
	await("one of 3 in "+id+".0\n", 3)
	c.AwaitState(t, 1, "down")
	c.Nodes[3].Boot(t)
	c.Nodes[3].Heal()
	c.StartSlurmd(t, 3)
	c.AwaitState(t, 1, "idle")
	c.Run(t, "scontrol", "requeue", id)
	c.AwaitJob(t, id, "PENDING")
	await("saved", 3+3)                                            // when the node was lost, and now
	c.Run(t, "scontrol", "update", "JobId="+id, "StartTime=now+2") // Slurm would let it wait for two minutes; a node does not start again what it was told to kill in the same second
	await("one of 4 in "+id+".0.1\n", 4)
	c.Run(t, "scancel", id)
	await("saved", 3+3+4)

	id, await = submit("slurm-fixed.sh")
	await("one of 2 in "+id+".0\n", 2)
	if err := os.WriteFile(filepath.Join(dir, "release"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.AwaitJob(t, id, "COMPLETED")
}

// awaitOutput waits until a text is in a file so often. The file comes when Slurm starts its job.
func awaitOutput(t *testing.T, file, text string, times int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		said, err := os.ReadFile(file)
		if err == nil && strings.Count(string(said), text) >= times {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q has not come %d times (%v):\n%s", text, times, err, said)
		}
	}
}
