package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestReplacePython: in the example in Python, the model outlives the worker that dies. Each rank adds 1 in each step.
func TestReplacePython(t *testing.T) {
	testkit.Nightly(t, "PyTorch takes seconds to start")
	python := ""
	for _, p := range []string{os.Getenv("PYTHON_EXEC"), "python3", "/usr/bin/python3"} {
		if p != "" && exec.CommandContext(t.Context(), p, "-c", "import torch.distributed").Run() == nil {
			python = p
			break
		}
	}
	if python == "" {
		testkit.Cannot(t, "no Python with torch: apt-get install python3-torch")
	}
	command := "PYTHON_EXEC=" + python + " gorun --nproc-per-node=3 --max-restarts=2 --on-failure=replace docs/examples/replace_python/main.py"
	want := []string{
		"[0] rank 0 goes on at step 0", "[0] rank 0 goes on at step 10",
		"[0] rank 0 lives on: rank 1 died: signal 9 (SIGKILL)", "[0] rank 0: 60 after 20 steps",
		"[1] rank 1 goes on at step 0", "[1] rank 1 goes on at step 10", "[1] rank 1: 60 after 20 steps",
		"[2] rank 2 goes on at step 0", "[2] rank 2 goes on at step 10",
		"[2] rank 2 lives on: rank 1 died: signal 9 (SIGKILL)", "[2] rank 2: 60 after 20 steps",
	}
	compare(t, command, sh(t, command), want)
}

// TestRoundsPython: the example's part of the agreement with the agent needs no torch.
func TestRoundsPython(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := roundsProgram(t, fmt.Sprintf(`
for deaths in range(int(os.environ["TORCHELASTIC_RESTART_COUNT"]), 3):
    open(os.path.join(%q, f"{os.environ['RANK']} {deaths}"), "w").close()
    while not all(os.path.exists(os.path.join(%[1]q, f"{rank} {deaths}")) for rank in range(4)):
        time.sleep(0.01)
    if os.environ["RANK"] == str(deaths):
        os.kill(os.getpid(), signal.SIGKILL)
    while not rounds.is_over(wait=1):
        pass
    died = [(d["rank"], d["exit_code"], d["reason"]) for d in rounds.enter(why="unused")]
    print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "in round", rounds.round, died, rounds.is_over(), flush=True)
`, dir))
	command := "gorun --nproc-per-node=4 --max-restarts=3 --max-restart-backoff=0 --on-failure=replace " + program
	var want []string
	for _, rank := range []int{0, 1, 2, 3} {
		for dead := range 3 {
			if rank > dead || rank < dead {
				want = append(want, fmt.Sprintf("[%d] rank %[1]d of 4 in round %d [(%d, -9, 'signal 9 (SIGKILL)')] False", rank, dead+2, dead))
			}
		}
	}
	compare(t, command, sh(t, command), want)
}

// TestRevokePython: if no worker has died, the example ends the round for all ranks.
func TestRevokePython(t *testing.T) {
	t.Parallel()
	program := roundsProgram(t, `
rank = int(os.environ["RANK"])
while rank > 0 and not rounds.is_over(wait=1):
    pass
died = rounds.enter(why="rank 1 has left" if rank == 0 else "unused")
print("rank", rank, "is in round", rounds.round, died, rounds.is_over(), flush=True)
`)
	command := "gorun --nproc-per-node=2 --max-restarts=1 --on-failure=replace " + program
	compare(t, command, sh(t, command), []string{"[0] rank 0 is in round 2 [] False", "[1] rank 1 is in round 2 [] False"})
}

// roundsProgram returns a program that has the example's Rounds.
func roundsProgram(t *testing.T, text string) (path string) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		testkit.Cannot(t, "no python3")
	}
	examples, err := filepath.Abs("replace_python")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "main.py")
	text = fmt.Sprintf("import os, signal, sys, time\nsys.path.insert(0, %q)\nfrom rounds import Rounds\n\nrounds = Rounds()\n%s", examples, text)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
