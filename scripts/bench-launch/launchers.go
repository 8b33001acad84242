package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gorun/gorun/scripts/internal/peers"
)

// A launcher starts n workers with this command, and may restart them once.
type launcher struct {
	name      string
	command   func(n int, worker []string) []string
	node      func(nodes, port string, worker []string) []string // one of several, with one restart for all; nil: it cannot
	restarts  bool                                               // it can
	replaces  bool                                               // it starts only the dead workers again
	preloads  bool                                               // it forks workers from a Python that has imported torch
	tagOutput []string
}

// torchrunFix: Debian's torchrun 1.13 under Python 3.11 cannot read --redirects and --tee, whose values it looks for
// among enum members over which Python no longer iterates.
const torchrunFix = `
import torch.distributed.elastic.multiprocessing.api as api
read = api.Std.from_str.__func__
api.Std.from_str = classmethod(lambda cls, s: api.Std(int(s)) if s.isdigit() else read(cls, s))
from torch.distributed.run import main
main()
`

// launchers returns the launchers on this machine, gorun first.
func launchers(gorun, dir string) []launcher {
	const replace, preload = "--on-failure=replace", "--preload=torch,torch.distributed"
	const preloadBoth = preload + ",gorun.torch"
	list := []launcher{ownLauncher("gorun", gorun), ownLauncher("gorun, replacing", gorun, replace),
		ownLauncher("gorun, preloading", gorun, preload), ownLauncher("gorun, both", gorun, replace, preloadBoth)}
	list[1].replaces, list[3].replaces = true, true
	list[2].preloads, list[3].preloads = true, true
	if python := peers.Python(); python != "" {
		script := filepath.Join(dir, "torchrun.py")
		if os.WriteFile(script, []byte(torchrunFix), 0o600) == nil {
			list = append(list, launcher{name: "torchrun", restarts: true, tagOutput: []string{"--tee", "3"}, command: func(n int, worker []string) []string {
				return append([]string{python, script, "--standalone", "--no_python", "--nproc_per_node", strconv.Itoa(n),
					"--max_restarts", "1", "--monitor_interval", "0.1"}, worker...)
			}, node: func(nodes, port string, worker []string) []string {
				return slices.Concat([]string{python, script}, meet(nodes, port), []string{"--no_python", "--monitor_interval", "0.1"}, worker)
			}})
		}
	}
	if path, err := exec.LookPath("mpirun.openmpi"); err == nil {
		list = append(list, launcher{name: "Open MPI", tagOutput: []string{"--tag-output"}, command: func(n int, worker []string) []string {
			return append([]string{path, "--allow-run-as-root", "--oversubscribe", "-n", strconv.Itoa(n)}, worker...)
		}})
	}
	if path, err := exec.LookPath("mpiexec.hydra"); err == nil {
		list = append(list, launcher{name: "MPICH", tagOutput: []string{"-l"}, command: func(n int, worker []string) []string {
			return append([]string{path, "-n", strconv.Itoa(n)}, worker...)
		}})
	}
	return list
}

// ownLauncher is gorun with some flags.
func ownLauncher(name, gorun string, flags ...string) launcher {
	return launcher{name: name, restarts: true, command: func(n int, worker []string) []string {
		return slices.Concat([]string{gorun, "--nproc-per-node", strconv.Itoa(n), "--max-restarts", "1"}, flags, worker)
	}, node: func(nodes, port string, worker []string) []string {
		return slices.Concat([]string{gorun}, meet(nodes, port), flags, worker)
	}}
}

// meet is the part of a command line by which gorun and torchrun meet.
func meet(nodes, port string) []string {
	return []string{"--nnodes", nodes, "--nproc_per_node", strconv.Itoa(perNode), "--max_restarts", "1", "--rdzv_backend", "c10d",
		"--rdzv_endpoint", "localhost:" + port, "--rdzv_id", "bench", "--rdzv_conf", "last_call_timeout=1"}
}

// tagged is the command with each line marked by its rank, as gorun does by itself.
func (l launcher) tagged(n int, worker []string) []string {
	argv := l.command(n, worker)
	at := 1
	if l.name == "torchrun" {
		at = 2 // after the script
	}
	return append(argv[:at:at], append(l.tagOutput, argv[at:]...)...)
}
