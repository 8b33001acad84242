package clustertest

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/hosttest"
)

// A SlurmConfig describes a cluster. Times are rounded up to seconds.
type SlurmConfig struct {
	Nodes       int           // 0: 2
	CPUs        int           // of a node; 0: 8
	KillWait    time.Duration // from SIGTERM to SIGKILL; 0: 30 s, Slurm's default
	NodeTimeout time.Duration // a node that has not answered for as long is down (SlurmdTimeout); 0: 60 s, as tests make the machine busy

	// ProctrackType says whom Slurm signals: proctrack/linuxproc, all processes of a step; proctrack/pgid, only its tasks, as proctrack/cgroup
	// does, for which there must be cgroups. Empty: the first.
	ProctrackType string
}

// A Slurm is a cluster that is running: munged, slurmctld and a slurmd for each node, on machines of hosttest. It ends with its test, and so does everything that it runs.
type Slurm struct {
	Login *hosttest.Machine   // where users are; slurmctld runs there too
	Nodes []*hosttest.Machine // n1, n2, ...

	dir string
}

// bound is how long the software of a cluster may take to come up, and to see a change.
const bound = time.Minute

// StartSlurm starts a cluster and returns when all its nodes are idle.
func StartSlurm(t testing.TB, c SlurmConfig) *Slurm {
	t.Helper()
	for _, need := range []struct{ program, debian string }{{"munged", "munge"}, {"slurmctld", "slurmctld"}, {"slurmd", "slurmd"}, {"srun", "slurm-client"}} {
		hosttest.Need(t, need.program, need.debian)
	}
	if c.Nodes == 0 {
		c.Nodes = 2
	}
	machines := []hosttest.Config{{Name: "login"}}
	for i := range c.Nodes {
		machines = append(machines, hosttest.Config{Name: fmt.Sprint("n", i+1)})
	}
	dir, err := os.MkdirTemp("", "slurm") //nolint:usetesting // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	booted := hosttest.NewMachines(t, machines...)
	s := &Slurm{Login: booted[0], Nodes: booted[1:], dir: dir}
	s.write(t, "slurm.conf", s.config(c))
	// slurmd asks for a plugin even if nothing uses it. This one looks for no cgroups before it is used.
	s.write(t, "cgroup.conf", "CgroupPlugin=cgroup/v1\n")
	s.write(t, "munge.key", rand.Text()+rand.Text()+rand.Text())
	for _, d := range []string{"state", "log", "spool", "munge"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { s.sayLogs(t) })
	// munged returns when the one that stays behind listens.
	s.Login.Run(t, "munged", "--force", "--num-threads=2", "--key-file="+s.path("munge.key"), "--socket="+s.path("munge/socket"),
		"--pid-file="+s.path("munge/pid"), "--log-file="+s.path("log/munged"), "--seed-file="+s.path("munge/seed"))
	s.Login.StartDaemon(t, s.Command("slurmctld", "-D", "-c"))
	for i := range s.Nodes {
		s.StartSlurmd(t, i)
	}
	s.AwaitState(t, c.Nodes, "idle")
	return s
}

// config is slurm.conf.
func (s *Slurm) config(c SlurmConfig) string {
	seconds := func(d, otherwise time.Duration) int {
		if d == 0 {
			d = otherwise
		}
		return int((d + time.Second - 1) / time.Second)
	}
	if c.CPUs == 0 {
		c.CPUs = 8
	}
	if c.ProctrackType == "" {
		c.ProctrackType = "proctrack/linuxproc"
	}
	lines := []string{
		"ClusterName=test", "SlurmctldHost=login(" + s.Login.Addr + ")", "SlurmUser=root", "SlurmdUser=root",
		"AuthType=auth/munge", "AuthInfo=socket=" + s.path("munge/socket"), "CredType=cred/munge",
		"MpiDefault=none", "ProctrackType=" + c.ProctrackType, "TaskPlugin=task/none", "SwitchType=switch/none",
		"JobAcctGatherType=jobacct_gather/none", "AccountingStorageType=accounting_storage/none",
		"SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU", "PropagateResourceLimits=NONE",
		// These start a job, and begin again after a failure, as soon as they can.
		"SchedulerType=sched/backfill", "SchedulerParameters=bf_interval=1,batch_sched_delay=0,sched_min_interval=1000", "ReturnToService=2",
		"SlurmdParameters=config_overrides", "StateSaveLocation=" + s.path("state"), "SlurmdSpoolDir=" + s.path("spool/%n"), "TmpFS=" + s.dir,
		"SlurmctldPidFile=" + s.path("slurmctld.pid"), "SlurmdPidFile=" + s.path("slurmd-%n.pid"),
		"SlurmctldLogFile=" + s.path("log/slurmctld"), "SlurmdLogFile=" + s.path("log/%n"),
		fmt.Sprint("SlurmdTimeout=", seconds(c.NodeTimeout, time.Minute)),
		fmt.Sprint("MessageTimeout=", min(60, seconds(c.NodeTimeout, time.Minute))),
		fmt.Sprint("KillWait=", seconds(c.KillWait, 30*time.Second)),
		"JobRequeue=1",
	}
	for _, n := range s.Nodes {
		lines = append(lines, fmt.Sprintf("NodeName=%[1]s NodeHostname=%[1]s NodeAddr=%[2]s CPUs=%[3]d RealMemory=1000", n.Name, n.Addr, c.CPUs))
	}
	lines = append(lines, "PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO")
	return strings.Join(lines, "\n") + "\n"
}

func (s *Slurm) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Slurm) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *Slurm) on(m *hosttest.Machine, name string, args ...string) *exec.Cmd {
	cmd := m.Command(name, args...)
	cmd.Env = append(cmd.Env, "SLURM_CONF="+s.path("slurm.conf"))
	return cmd
}

// Command is a command for s.Login.Start, such as srun, which finds the cluster.
func (s *Slurm) Command(name string, args ...string) *exec.Cmd { return s.on(s.Login, name, args...) }

// Run runs such a command and returns what it prints, without the last newline. If it fails, so does the test.
func (s *Slurm) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	return s.Login.Output(t, s.Command(name, args...))
}

// StartSlurmd starts the slurmd of node i, from 0, after a boot.
func (s *Slurm) StartSlurmd(t testing.TB, i int) {
	t.Helper()
	s.Nodes[i].StartDaemon(t, s.on(s.Nodes[i], "slurmd", "-D", "-N", s.Nodes[i].Name))
}

// AwaitState waits until some nodes are in a state, such as "idle" or "down".
func (s *Slurm) AwaitState(t testing.TB, nodes int, state string) {
	t.Helper()
	s.awaitWords(t, nodes, "sinfo", "--noheader", "--Node", "--states="+state, "--format=%N")
}

// AwaitJob waits until a job is in a state, such as "PENDING".
func (s *Slurm) AwaitJob(t testing.TB, id, state string) {
	t.Helper()
	s.awaitWords(t, 1, "squeue", "--noheader", "--jobs="+id, "--states="+state, "--format=%A")
}

// awaitWords waits until a command prints so many words. Nothing in Slurm tells of changes.
func (s *Slurm) awaitWords(t testing.TB, words int, name string, args ...string) {
	t.Helper()
	for deadline := time.Now().Add(bound); ; {
		cmd := s.Command(name, args...)
		var list strings.Builder
		cmd.Stdout = &list
		if err := s.Login.Start(cmd); err != nil {
			t.Fatal(err)
		}
		// An error says that slurmctld does not listen yet.
		if err := cmd.Wait(); err == nil && len(strings.Fields(list.String())) == words {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v, %s %s: %q, want %d", bound, name, strings.Join(args, " "), list.String(), words)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// sayLogs shows the ends of the logs if the test has failed.
func (s *Slurm) sayLogs(t testing.TB) {
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(s.path("log/*"))
	for _, file := range logs {
		text, err := os.ReadFile(file)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		t.Logf("%s (%v):\n%s", filepath.Base(file), err, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
}
