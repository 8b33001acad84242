package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/env/testing/clustertest"
	"github.com/gorun/gorun/env/testing/hosttest"
)

// A slurmUser runs commands on the login node of a cluster, whose nodes have MUNGE if it says so.
type slurmUser struct {
	*clustertest.Slurm
	path string // with munge and unmunge
}

func newSlurmUser(t *testing.T, nodes int) slurmUser {
	t.Helper()
	hosttest.Need(t, "unmunge", "munge")
	c := clustertest.StartSlurm(t, clustertest.SlurmConfig{Nodes: nodes})
	said := c.Run(t, "sh", "-c", "scontrol show config | grep ^AuthInfo")
	_, socket, ok := strings.Cut(said, "socket=")
	if !ok {
		t.Fatalf("no socket of MUNGE in %q", said)
	}
	return slurmUser{c, clustertest.MUNGEPrograms(t, strings.TrimSpace(socket)) + ":" + os.Getenv("PATH")}
}

// run runs a command of the shell, and returns its output and its exit code.
func (u slurmUser) run(t *testing.T, munge bool, script string, environ ...string) (stdout, stderr []string, code int) {
	t.Helper()
	cmd := u.Command("timeout", "100", "sh", "-c", script)
	cmd.Env = append(cmd.Env, raceExitsAtOnce, "LOGLEVEL=info")
	if munge {
		cmd.Env = append(cmd.Env, "PATH="+u.path)
	} else {
		cmd.Env = append(cmd.Env, "PATH="+withoutMunge(t))
	}
	cmd.Env = append(cmd.Env, environ...)
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := u.Login.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	lines := func(s string) []string { return slices.Sorted(strings.Lines(s)) }
	return lines(out.String()), lines(problems.String()), code
}

// withoutMunge returns a PATH with the programs of this one, but those of MUNGE.
func withoutMunge(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"gorun", "ranks", "srun", "sh", "sleep", "hostname", "grep", "true", "openssl", "env",
		"salloc", "mpirun.openmpi", "mpiexec.hydra", "hydra_pmi_proxy", "orted", "ssh"} {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, dir+"/"+name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// brokenMunge returns a PATH whose MUNGE does not work.
func brokenMunge(t *testing.T) (variable string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/munge", []byte("#!/bin/sh\necho 'munge: Error: no daemon' >&2\nexit 6\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return "PATH=" + dir + ":" + os.Getenv("PATH")
}

// TestSrunGorun: under srun, gorun needs no flags but the program's, and refuses what would run on fewer nodes, or twice on one.
func TestSrunGorun(t *testing.T) {
	t.Parallel()
	u := newSlurmUser(t, 3)
	const token = "GORUN_TOKEN=0123456789abcdef0123456789abcdef"
	ranks := func(job string, nodes ...string) (lines []string) {
		for i := range 2 * len(nodes) {
			lines = append(lines, fmt.Sprintf("[%d] rank %d of %d on %s in %s\n", i, i, 2*len(nodes), nodes[i/2], job))
		}
		return lines
	}
	const program = ` --nproc-per-node=2 sh -c 'echo rank $RANK of $WORLD_SIZE on $(hostname) in $TORCHELASTIC_RUN_ID'`
	for _, c := range []struct {
		name    string
		munge   bool
		script  string
		environ []string
		code    int
		stdout  []string
		stderr  string // of lines that begin with gorun, or with the time of a line of its log, but those that say that it waits: a busy machine is slow
	}{
		{"three nodes by MUNGE", true, "srun -N3 gorun" + program, nil, 0, ranks("1.0", "n1", "n2", "n3"),
			`^\S+ \[INFO\]  gorun: Slurm step 1.0: --nnodes=3 \(SLURM_STEP_NUM_NODES\) --node-rank=0 \(SLURM_NODEID\) .* --rdzv-endpoint=n1:(\d+),n2:\d+,n3:\d+ \(.*; token: from the node of rank 0, by MUNGE\n$`},
		{"two nodes with a token", false, "srun -N2 -w n[1-2] gorun" + program, []string{token}, 0, ranks("2.0", "n1", "n2"),
			`^\S+ \[INFO\]  gorun: Slurm step 2.0: --nnodes=2 [^;]* --rdzv-endpoint=n1:\d+ \(SLURM_STEP_NODELIST; the port from SLURM_JOB_ID, SLURM_STEP_ID\)\n$`},
		{"no token", false, "srun -N2 -w n[1-2] gorun true", nil, 2, nil,
			`(?s)^(gorun: Slurm step 3.0: the nodes need a token, so that nobody else can start programs at n1:\d+: write export GORUN_TOKEN=\$\(openssl rand -hex 32\) before srun\n){2}$`},
		{"the line to write", false, "export GORUN_TOKEN=$(openssl rand -hex 32); srun -N2 -w n[1-2] gorun" + program, nil, 0, ranks("4.0", "n1", "n2"), `--nnodes=2 `},
		{"without srun", true, "salloc -Q -N2 -w n[1-2] --ntasks-per-node=2 gorun true", nil, 2, nil,
			`^gorun: Slurm job 5 has 2 nodes \(SLURM_JOB_NUM_NODES\), and without srun gorun would run on one of them: write srun --ntasks=2 --ntasks-per-node=1 gorun ...; to run on one node, add --nnodes=1\n$`},
		{"with the srun that it says", true, "salloc -Q -N2 -w n[1-2] --ntasks-per-node=2 srun --ntasks=2 --ntasks-per-node=1 gorun" + program, nil, 0, ranks("6.0", "n1", "n2"), `--nnodes=2 `},
		{"several on a node", true, "srun -N2 -w n[1-2] --ntasks-per-node=2 gorun true", nil, 2, nil,
			`^(gorun: Slurm step 7.0 has started several gorun on this node: want one for each node, as in srun --ntasks=2 --ntasks-per-node=1 gorun --nproc-per-node=2 ...; if each is a job of its own, add --standalone\n){4}$`},
		{"jobs of their own", true, "srun -N2 -w n[1-2] --ntasks-per-node=2 gorun --standalone sh -c 'echo rank $RANK of $WORLD_SIZE'", nil, 0,
			slices.Repeat([]string{"[0] rank 0 of 1\n"}, 4), `^$`},
		{"cyclic", true, "srun -N2 -w n[1-2] -m cyclic gorun" + program, nil, 0, ranks("9.0", "n1", "n2"), `--nnodes=2 `},
		{"one after the other", true, "srun -N3 sh -c 'for i in 1 2 3; do gorun sh -c \"echo rank \\$RANK\" || exit; done'", nil, 0,
			slices.Sorted(slices.Values(slices.Repeat([]string{"[0] rank 0\n", "[1] rank 1\n", "[2] rank 2\n"}, 3))), `(?s)^(\S+ \[INFO\]  gorun: Slurm step .*\n){3}$`},
		{"one after the other, with a token", true, "srun -N2 -w n[1-2] sh -c 'for i in 1 2 3; do gorun sh -c \"echo rank \\$RANK\" || exit; done'", []string{token}, 0,
			slices.Sorted(slices.Values(slices.Repeat([]string{"[0] rank 0\n", "[1] rank 1\n"}, 3))), `(?s)^(\S+ \[INFO\]  gorun: Slurm step .*\n){3}$`},
		{"MUNGE at the socket of slurm.conf", true, "srun -N2 -w n[1-2] gorun" + program, []string{"PATH=" + os.Getenv("PATH")}, 0, ranks("12.0", "n1", "n2"), `by MUNGE\n$`},
		{"MUNGE that does not work", true, "srun -N3 gorun true", []string{brokenMunge(t)}, 2, nil,
			`(?s)^\S+ \[INFO\]  gorun: Slurm step 13.0: [^\n]*\n(gorun: cannot get a token by MUNGE, which does not work on n[123]: munge: Error: no daemon; write export GORUN_TOKEN=\$\(openssl rand -hex 32\) before srun\n){3}$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := u.run(t, c.munge, c.script, c.environ...)
			said := ""
			for _, line := range stderr {
				if (strings.HasPrefix(line, "gorun: ") || strings.Contains(line, "] ")) && !strings.Contains(line, "gorun: waiting: ") {
					said += line
				}
			}
			if code != c.code || !slices.Equal(stdout, c.stdout) || !regexp.MustCompile(c.stderr).MatchString(said) {
				t.Errorf("exit code %d, want %d\n got %q\nwant %q\nstderr: %s\nall of it:\n%s", code, c.code, stdout, c.stdout, said, strings.Join(stderr, ""))
			}
		})
	}
}

// TestStatusByMunge: from a login node, somebody sees and stops a job of theirs without a token, since both have MUNGE.
func TestStatusByMunge(t *testing.T) {
	t.Parallel()
	u := newSlurmUser(t, 2)
	runs := t.TempDir() + "/runs"
	where := fmt.Sprintf(" --rdzv-endpoint=n1:%d 1.0", manager.Port("1.0"))
	stdout, stderr, code := u.run(t, true, `srun -N2 gorun sh -c 'echo runs; exec sleep 60' >`+runs+` & until [ "$(grep -c runs `+runs+`)" = 2 ]; do sleep 0.05; done
		gorun status`+where+` && gorun stop`+where+`; wait`)
	if said := strings.Join(stdout, ""); code != 0 || !strings.Contains(said, "n1") || !strings.Contains(said, "n2") || !slices.ContainsFunc(stderr, regexp.MustCompile(`stopped by gorun stop`).MatchString) {
		t.Errorf("exit code %d\n%s\n%s", code, said, strings.Join(stderr, ""))
	}
	_, stderr, code = u.run(t, true, "gorun status"+where)
	if want := "only who has the credentials of a job may see and steer it, and MUNGE gives none: "; code != 2 || len(stderr) != 1 || !strings.Contains(stderr[0], want) {
		t.Errorf("no such job: exit code %d, %q, want %q", code, stderr, want)
	}
}

// TestInitWithoutGorun: if srun, mpirun or mpiexec has started the ranks, comm.Init needs no variables of anybody else.
func TestInitWithoutGorun(t *testing.T) {
	t.Parallel()
	u := newSlurmUser(t, 3)
	const token = "GORUN_TOKEN=0123456789abcdef0123456789abcdef"
	sums := func(ranks int) []string {
		return slices.Repeat([]string{fmt.Sprintf("sum %d of %d\n", ranks*(ranks-1)/2, ranks)}, ranks)
	}
	for _, c := range []struct {
		name    string
		munge   bool
		script  string
		environ []string
		ranks   int    // that print their sum; 0: none does
		stderr  string // of one line, if none does
	}{
		{"srun", true, "srun -N3 -n6 ranks sum", nil, 6, ""},
		{"srun with a token", false, "srun -N2 -w n[1-2] -n4 ranks sum", []string{token}, 4, ""},
		{"srun, cyclic", true, "srun -N2 -w n[1-2] -n5 -m cyclic ranks sum", nil, 5, ""},
		{"srun on one node", false, "srun -N1 -n3 ranks sum", nil, 3, ""},
		{"srun of one", false, "srun -N1 -n1 ranks sum", nil, 1, ""},
		{"two worlds, one after the other", true, "srun -N2 -w n[1-2] -n4 ranks twice", nil, 4, ""},
		{"srun without a token", false, "srun -N2 -w n[1-2] -n2 ranks sum", nil, 0,
			`n1:\d+ can be reached from the network and there is no token: write export GORUN_TOKEN=\$\(openssl rand -hex 32\) before srun`},
		{"srun with MUNGE that does not work", true, "srun -N2 -w n[1-2] -n2 sh -c 'test $SLURM_PROCID = 0 || ranks sum'", []string{brokenMunge(t)}, 0,
			`cannot get a token by MUNGE, which does not work on n2: munge: Error: no daemon; write export GORUN_TOKEN=\$\(openssl rand -hex 32\) before srun`},
		{"mpirun", false, "mpirun.openmpi --allow-run-as-root --oversubscribe -n 3 ranks sum", nil, 3, ""},
		{"mpirun on several nodes", false, "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 ranks sum", nil, 0,
			`Open MPI does not say where rank 0 runs: set MASTER_ADDR=HOST, MASTER_PORT=PORT and GORUN_TOKEN for all ranks \(mpirun -x NAME\), where HOST is the host of rank 0`},
		{"mpirun that says where rank 0 is", false, "mpirun.openmpi --allow-run-as-root --oversubscribe -n 3 -x MASTER_ADDR=127.0.0.1 -x MASTER_PORT=29555 ranks sum", nil, 3, ""},
		{"mpiexec", false, "mpiexec.hydra -n 3 ranks sum", nil, 0, `MPICH does not say where rank 0 runs: set MASTER_ADDR=HOST, MASTER_PORT=PORT and GORUN_TOKEN for all ranks`},
		{"mpiexec that says where rank 0 is", false, "MASTER_ADDR=127.0.0.1 MASTER_PORT=29556 mpiexec.hydra -n 3 ranks sum", nil, 3, ""},
		{"torchrun's variables come first", true, "srun -N2 -w n[1-2] -n2 env RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 ranks sum", nil, -2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if program, _, _ := strings.Cut(c.script, " "); strings.HasPrefix(program, "mpi") {
				hosttest.Need(t, program, "mpich openmpi-bin")
			}
			want := sums(max(c.ranks, 0))
			if c.ranks < 0 {
				want = slices.Repeat(sums(1), -c.ranks)
			}
			stdout, stderr, code := u.run(t, c.munge, c.script, c.environ...)
			matches := c.stderr == "" || slices.ContainsFunc(stderr, regexp.MustCompile(c.stderr).MatchString)
			if !slices.Equal(stdout, want) || (code == 0) != (c.ranks != 0) || !matches {
				t.Errorf("exit code %d\n got %q\nwant %q\n%s", code, stdout, want, strings.Join(stderr, ""))
			}
		})
	}
}
