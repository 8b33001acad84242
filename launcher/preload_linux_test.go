package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/launcher/guard"
)

// pythonSpec is a Spec of n workers that run a program in Python, below a directory with these files.
func pythonSpec(t *testing.T, n int, files map[string]string, target string, args ...string) (Spec, *screen, string) {
	t.Helper()
	s, con := spec(t, n)
	dir := tree(t, files)
	program, err := Python("/usr/bin/python3").Resolve(filepath.Join(dir, target), args)
	if err != nil {
		t.Fatal(err)
	}
	s.Argv = program.Argv
	for i := range s.Workers {
		s.Workers[i].Env = append(s.Workers[i].Env, "PATH="+os.Getenv("PATH"), "EMPTY=", "ODD=\xff=x", "PYTHONPATH="+filepath.Join(dir, "lib"))
	}
	ahead, err := guard.Start(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ahead.Close)
	s.Guard = ahead
	return s, con, dir
}

// preload makes the workers of s preloaded.
func preload(t *testing.T, s *Spec, modules ...string) *Preload {
	t.Helper()
	shared := slices.Clone(sharedEnv(s.Workers))
	for _, v := range s.Workers[0].Env { // they begin with their ranks
		if !strings.HasPrefix(v, "RANK=") && !slices.Contains(shared, v) {
			shared = append(shared, v)
		}
	}
	s.Preload = &Preload{Modules: modules, Env: shared}
	if err := s.Preload.Start(s.Guard, s.Argv, s.Warn); err != nil {
		t.Fatal(err)
	}
	return s.Preload
}

// describe is a program that prints what it finds of itself.
const describe = `
import json, os, resource, signal, sys, threading
main = sys.modules["__main__"]
with open("/proc/self/status") as file:
    status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
with open("/proc/self/environ", "rb") as file:
    environ = [v.decode() for v in file.read().split(b"\0") if v.startswith(b"RANK=")]
with open("/proc/self/cmdline") as file:
    cmdline = file.read().rstrip("\0")
print("found", json.dumps({
    "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "flags": str(sys.flags), "cmdline": cmdline, "proc environ": environ,
    "main": {name: str(getattr(main, name, None)).split(" at 0x")[0] for name in dir(main) if name.startswith("__") and name != "__cached__"},
    "environ": {repr(k): repr(v) for k, v in os.environb.items()}, "order": [repr(k) for k in os.environb],
    "cwd": os.getcwd(), "files": os.listdir("/proc/self/fd")[:-1], "leads its group": os.getpgid(0) == os.getpid(),
    "session": os.getsid(0) == os.getppid(), "limits": [resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT")],
    "status": {name: status[name] for name in ("Name", "Umask", "Threads", "SigBlk", "SigIgn", "SigCgt", "Cpus_allowed")},
    "main thread": threading.main_thread() is threading.current_thread(), "native": threading.main_thread().native_id == os.getpid(),
    "stdio": [(f.name, f.encoding, f.errors, f.line_buffering, f.write_through, f.isatty()) for f in (sys.stdin, sys.stdout, sys.stderr)],
    "site": "sitecustomize" in sys.modules, "parent": open("/proc/%d/comm" % os.getppid()).read(),
}, sort_keys=True))
`

// found returns what describe has printed, by rank.
func found(t *testing.T, con *screen) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for line := range strings.Lines(con.String()) {
		rank, text, ok := strings.Cut(line, " found ")
		if !ok {
			continue
		}
		var what map[string]any
		if err := json.Unmarshal([]byte(text), &what); err != nil {
			t.Fatal(err)
		}
		all[rank] = what
	}
	return all
}

// TestPreloadedWorkerIsTheSame: a worker that was forked finds what one finds that was executed, however its program is given.
func TestPreloadedWorkerIsTheSame(t *testing.T) {
	files := map[string]string{
		"train.py": describe, "app/__main__.py": describe, "pkg/__init__.py": "", "pkg/train.py": describe,
		"lib/sitecustomize.py": "import builtins; builtins.mine = 1",
	}
	for name, resolve := range map[string]func(dir string) (*Program, error){
		"script": func(dir string) (*Program, error) {
			return Python("/usr/bin/python3").Resolve(filepath.Join(dir, "train.py"), []string{"a", "", "b c"})
		},
		"directory": func(dir string) (*Program, error) {
			return Python("/usr/bin/python3").Resolve(filepath.Join(dir, "app"), nil)
		},
		"module": func(string) (*Program, error) {
			return Python("/usr/bin/python3").ResolveModule("pkg.train", []string{"x"})
		},
		"run path": func(dir string) (*Program, error) {
			return Python("/usr/bin/python3").ResolveRunPath(filepath.Join(dir, "train.py"), []string{"y"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, dir := pythonSpec(t, 2, files, "train.py")
			t.Chdir(dir)
			program, err := resolve(dir)
			if err != nil {
				t.Fatal(err)
			}
			s.Argv = program.Argv
			s.Argv = append(s.Argv, "${local_rank}")
			for i := range s.Workers { // as the agent does with macros
				s.Workers[i].Argv = append(s.Argv[:len(s.Argv)-1:len(s.Argv)-1], strconv.Itoa(i))
			}
			s.Workers[1].Argv = append(s.Workers[1].Argv, "x")
			s.Workers[0].CPUs = []int{0}
			var seen [2]map[string]map[string]any
			for i := range seen {
				con := newScreen()
				s.Stdout, s.Stderr = con, con
				if i == 1 {
					preload(t, &s, "decimal", "ctypes")
				}
				g := start(t, s)
				pids := g.Pids()
				for _, x := range exits(t, g) {
					if x.Failed() {
						t.Fatalf("%+v\n%s", x, con)
					}
				}
				gone(t, pids...)
				seen[i] = found(t, con)
			}
			for rank, want := range seen[0] {
				for what := range want {
					if got := seen[1][rank][what]; !reflect.DeepEqual(got, want[what]) {
						t.Errorf("%s: %s is\n%v, and without preloading\n%v", rank, what, got, want[what])
					}
				}
			}
		})
	}
}

// TestPreloadedOnce: one interpreter imports a module, for all gangs, and reads the program anew for each.
func TestPreloadedOnce(t *testing.T) {
	for _, apart := range []bool{false, true} {
		s, con, dir := pythonSpec(t, 3, map[string]string{"lib/heavy.py": "import os\nnumber = os.getpid()\nprint('imported')", "train.py": ""}, "train.py")
		var warned warnings
		s.Warn, s.Apart = warned.add, apart
		preload(t, &s, "heavy")
		var g *Gang
		for round := range 3 {
			program := "import heavy, sys; print('imported by', heavy.number); print('round " + strconv.Itoa(round) + "'); sys.exit(round := 3)"
			if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			if !apart || round == 0 {
				g = start(t, s)
			} else if err := g.Replace(t.Context(), s, []int{0, 1, 2}); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if x, _ := nextExit(t, g); x.ExitCode != 3 || x.Stopped {
					t.Errorf("%+v", x)
				}
			}
			if apart {
				for range 3 {
					nextEnd(t, g)
				}
				continue
			}
			exits(t, g)
		}
		if apart {
			g.Finish()
			exits(t, g)
		}
		pids := con.pids(t, "imported by", 9)
		if slices.Min(pids) != slices.Max(pids) || slices.Contains(g.Pids(), pids[0]) || strings.Count(con.String(), "round 2") != 3 {
			t.Errorf("the workers' modules were imported by %v; their console:\n%s", pids, con)
		}
		if !lives(pids[0]) || warned.String() != "--preload: imported" {
			t.Errorf("the interpreter lives: %v; warned %q", lives(pids[0]), warned.String())
		}
		s.Guard.Close()
		gone(t, pids[0])
	}
}

// TestNotPreloaded: where a fork would not be what a new process is, or modules cannot be imported, workers start without it, or not at all.
func TestNotPreloaded(t *testing.T) {
	files := map[string]string{
		"train.py":        "print('runs')",
		"lib/threads.py":  "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
		"lib/children.py": "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])",
		"lib/broken.py":   "1/0", "lib/leaves.py": "import sys; sys.exit(5)", "lib/dies.py": "import os; os._exit(6)",
		"lib/hangs.py": "import time; time.sleep(1000)", "lib/killed.py": "import os; os.kill(os.getpid(), 9)",
		"lib/closes.py": "import os; os.closerange(3, 100)",
		"lib/reads.py":  "import os; rank = int(os.getenv('RANK', '-1'))", "lib/sets.py": "import os; os.environ.setdefault('RANK', '0')",
		"lib/seeds.py": "import random; random.seed(1)",
		"lib/opens.py": "import os; file = open(os.__file__)",
	}
	for module, want := range map[string]string{
		"threads":       "threads starts threads (python3), which a forked worker would lack",
		"children":      "children starts a process, which forked workers would share",
		"broken":        "cannot import broken (ZeroDivisionError: division by zero)",
		"leaves":        "leaves exits with code 5 when it is imported",
		"dies":          "its interpreter exited with code 6 while it imported dies",
		"killed":        "its interpreter ended while it imported killed",
		"reads":         "reads reads RANK when it is imported, which is each worker's own",
		"sets":          "sets reads RANK when it is imported, which is each worker's own",
		"seeds":         "seeds sets or uses the random numbers of random when it is imported, and each worker has its own",
		"hangs":         "the import of hangs has not ended within 300ms",
		"not_there":     "cannot import not_there (ModuleNotFoundError: No module named 'not_there')",
		"decimal.wrong": "cannot import decimal.wrong (ModuleNotFoundError: No module named 'decimal.wrong'; 'decimal' is not a package)",
	} {
		for _, strict := range []bool{false, true} {
			t.Run(module, func(t *testing.T) {
				s, con, _ := pythonSpec(t, 2, files, "train.py")
				var warned warnings
				s.Warn = warned.add
				p := preload(t, &s, module)
				p.Strict = strict
				if module == "hangs" {
					s.Guard.Close()
					ahead, err := guard.Start(2)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(ahead.Close)
					s.Guard, p.limit = ahead, 300*time.Millisecond
					if err := p.Start(s.Guard, s.Argv, s.Warn); err != nil {
						t.Fatal(err)
					}
				}
				g, err := Start(t.Context(), s)
				want := "--preload: " + want
				if strict {
					if strictly, ok := errors.AsType[*PreloadError](err); !ok || strictly.Error() != want {
						t.Errorf("%v, want %s", err, want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				exits(t, g)
				want += "; the workers start without it"
				if strings.Count(con.String(), "runs") != 2 || warned.String() != want {
					t.Errorf("warned %q, want %q; console:\n%s", warned.String(), want, con)
				}
			})
		}
	}
}

// TestNotYetPreloaded: workers that are to end before the imports have ended do not begin, and the others do not notice.
func TestNotYetPreloaded(t *testing.T) {
	s, con, dir := pythonSpec(t, 2, map[string]string{"lib/heavy.py": "", "train.py": "print('runs')\nimport time; time.sleep(1000)"}, "train.py")
	var warned warnings
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	s.Warn = func(msg string) {
		warned.add(msg)
		cancel(why)
	}
	preload(t, &s, "heavy")
	g := startApart(t, s)
	con.wait(t, "runs", 2)
	g.Kill(1)
	nextEnd(t, g)
	if err := os.WriteFile(filepath.Join(dir, "lib/heavy.py"), []byte("import time; time.sleep(1000)"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := g.Replace(ctx, s, []int{1}); !errors.Is(err, why) {
		t.Error(err)
	}
	if !lives(g.Pids()[0]) {
		t.Error("the other worker has ended")
	}
	g.Kill(0)
	nextEnd(t, g)
	if want := "--preload: " + filepath.Join(dir, "lib/heavy.py") + " has changed: a new interpreter imports it"; warned.String() != want {
		t.Errorf("warned %q, want %q", warned.String(), want)
	}
	if strings.Count(con.String(), "runs") != 2 {
		t.Errorf("console:\n%s", con)
	}
}

// TestInterpreterEnds: whatever happens to the interpreter harms no worker, and the next gang has another.
func TestInterpreterEnds(t *testing.T) {
	program := "import heavy, sys\nprint('imported by', heavy.number)\nsys.stdin.read()\nimport time; time.sleep(0 if heavy.number != int(sys.argv[1]) else 1000)"
	for name, harm := range map[string]func(t *testing.T, pid int, dir string){
		"killed":  func(_ *testing.T, pid int, _ string) { _ = syscall.Kill(pid, syscall.SIGKILL) },
		"stopped": func(_ *testing.T, pid int, _ string) { _ = syscall.Kill(pid, syscall.SIGSTOP) },
		"changed": func(t *testing.T, _ int, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "lib/heavy.py"), []byte("import os\nnumber = os.getpid() # changed"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, con, dir := pythonSpec(t, 1, map[string]string{"lib/heavy.py": "import os\nnumber = os.getpid()", "train.py": program}, "train.py", "0")
			var warned warnings
			s.Warn = warned.add
			preload(t, &s, "heavy")
			exits(t, start(t, s))
			first := con.pids(t, "imported by", 1)[0]
			s.Workers[0].Argv = append(s.Argv[:len(s.Argv)-1:len(s.Argv)-1], strconv.Itoa(first)) // a worker of the first interpreter waits
			waits := start(t, s)
			con.wait(t, "imported by", 2)
			harm(t, first, dir)
			if !lives(waits.Pids()[0]) {
				t.Error("the worker has ended with its interpreter")
			}
			waits.Kill()
			exits(t, waits)
			for range 2 {
				exits(t, start(t, s))
			}
			pids := con.pids(t, "imported by", 4)
			if pids[3] == first || lives(first) {
				t.Errorf("the interpreters were %v; the first lives: %v", pids, lives(first))
			}
			want := map[string]string{"stopped": "--preload: its interpreter has not answered within 5s; the workers start without it",
				"changed": "--preload: " + filepath.Join(dir, "lib/heavy.py") + " has changed: a new interpreter imports it"}[name]
			if warned.String() != want {
				t.Errorf("warned %q, want %q", warned.String(), want)
			}
		})
	}
}

// TestPreloadedBehaviour: exit codes, signals, exceptions, random numbers and the start methods of multiprocessing are those of any worker.
func TestPreloadedBehaviour(t *testing.T) {
	for name, tt := range map[string]struct {
		program string
		code    int
		console string
	}{
		"exit":        {"import sys; sys.exit(7)", 7, ""},
		"text":        {"import sys; sys.exit('no')", 1, "no"},
		"exception":   {"def f(): raise ValueError('bad')\nf()", 1, "train.py\", line 1, in f"},
		"signal":      {"import os; os.kill(os.getpid(), 9)", -9, ""},
		"interrupt":   {"import os, signal; os.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(100)", -2, "KeyboardInterrupt"},
		"atexit":      {"import atexit; atexit.register(print, 'at exit')", 0, "at exit"},
		"crash":       {"import ctypes, faulthandler; faulthandler.enable(); ctypes.string_at(0)", -11, "Fatal Python error: Segmentation fault"},
		"fork":        {"import os; pid = os.fork(); os._exit(3) if pid == 0 else print('child', os.waitpid(pid, 0)[1])", 0, "child 768"},
		"spawn":       {multi("spawn"), 0, "three 3"},
		"forkserver":  {multi("forkserver"), 0, "three 3"},
		"thread":      {"import threading; threading.Thread(target=print, args=('a thread',)).start()", 0, "a thread"},
		"traceback":   {"raise ValueError", 1, "Traceback (most recent call last):\n"},
		"own modules": {"import mine; print(mine.__file__)", 0, "mine.py"},
	} {
		t.Run(name, func(t *testing.T) {
			s, con, _ := pythonSpec(t, 1, map[string]string{"train.py": tt.program, "mine.py": ""}, "train.py")
			preload(t, &s, "decimal")
			s.Preload.Strict = true
			s.Warn = func(string) {} // what multiprocessing starts may end late
			all := exits(t, start(t, s))
			if len(all) != 1 || all[0].ExitCode != tt.code || !strings.Contains(con.String(), tt.console) || strings.Contains(con.String(), "sitecustomize") {
				t.Errorf("%+v; console:\n%s", all, con)
			}
		})
	}
}

// TestProgramRunsInWorkersOnly: whatever Python is, its interpreter does not run the program, and a worker has its sys.path.
func TestProgramRunsInWorkersOnly(t *testing.T) {
	const program = "import sys; print('runs', sys.path.count(''), len(sys.path) - len(set(sys.path)))\nwith open(sys.argv[1], 'a') as file: file.write('x')"
	for name, tt := range map[string]struct{ custom, wrapper, want string }{
		"bad hook":            {custom: "raise RuntimeError('bad hook')"},
		"script":              {wrapper: `exec "$PYTHON" "$@"`},
		"parent":              {wrapper: `"$PYTHON" "$@"`},
		"other path":          {wrapper: `PYTHONPATH=/nowhere exec "$PYTHON" "$@"`, want: "does not pass on PYTHONPATH and open files"},
		"files are closed":    {wrapper: `exec "$PYTHON" "$@" 4<&-`, want: "does not pass on PYTHONPATH and open files"},
		"empty list of paths": {},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"train.py": program, "lib/empty.py": ""}
			if tt.custom != "" {
				files["lib/sitecustomize.py"] = tt.custom
			}
			s, con, dir := pythonSpec(t, 1, files, "train.py")
			s.Argv = append(s.Argv, filepath.Join(dir, "ran"))
			if name == "empty list of paths" {
				s.Workers[0].Env = append(s.Workers[0].Env[:len(s.Workers[0].Env)-1], "PYTHONPATH=")
			}
			if tt.wrapper != "" {
				wrapper := filepath.Join(dir, "python")
				text := "#!/bin/sh\nPYTHON=" + s.Argv[0] + "\n" + tt.wrapper + "\n"
				if err := os.WriteFile(wrapper, []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
					t.Fatal(err)
				}
				s.Argv[0] = wrapper
			}
			var warned warnings
			s.Warn = warned.add
			preload(t, &s, "decimal")
			exits(t, start(t, s))
			ran, err := os.ReadFile(filepath.Join(dir, "ran"))
			if err != nil || string(ran) != "x" || !strings.Contains(con.String(), "runs 0 0") {
				t.Errorf("ran %q, %v; console:\n%s", ran, err, con)
			}
			if (tt.want == "") != (warned.String() == "") || !strings.Contains(warned.String(), tt.want) {
				t.Errorf("warned %q, want %q", warned.String(), tt.want)
			}
		})
	}
}

func multi(how string) string {
	return "import multiprocessing\ndef f(x): return x + 1\nif __name__ == '__main__':\n  with multiprocessing.get_context('" + how +
		"').Pool(1) as pool: print('three', pool.apply(f, (2,)))"
}

// TestPreloadedRandom: workers draw other numbers than each other.
func TestPreloadedRandom(t *testing.T) {
	s, con, _ := pythonSpec(t, 3, map[string]string{
		"train.py": "import random, numpy, multiprocessing\nprint('drew', random.randrange(1 << 40)); print('drew', numpy.random.randint(1 << 40)); print('drew', int.from_bytes(multiprocessing.current_process().authkey[:4], 'big'))",
	}, "train.py")
	for i := range s.Workers {
		s.Workers[i].Env = append(s.Workers[i].Env, "OPENBLAS_NUM_THREADS=2") // it starts a thread, and ends it before a fork
	}
	preload(t, &s, "numpy", "random", "multiprocessing")
	s.Preload.Strict = true
	exits(t, start(t, s))
	drawn := con.pids(t, "drew", 9)
	slices.Sort(drawn)
	if len(slices.Compact(drawn)) != 9 {
		t.Errorf("drew %v", drawn)
	}
}

// TestPreloadAuto: what a program imports at its top level is imported if it is installed, through its own modules, too.
func TestPreloadAuto(t *testing.T) {
	s, con, _ := pythonSpec(t, 1, map[string]string{
		"train.py": `import sys
import decimal, os.path as p
from xml.dom import minidom
from model import net
try:
    import fractions
    import not_there
except ImportError:
    pass
def f():
    import html, os
    os.environ["X"] = "y"
print("found", [name for name in ("decimal", "xml.dom", "fractions", "statistics", "html", "secrets", "colorsys") if name in before])
print("ran", ran)
import os
os.environ["X"] = "y"
import colorsys
`,
		"model/__init__.py": "", "model/net.py": "import statistics\nimport builtins\nbuiltins.ran = getattr(builtins, 'ran', 0) + 1",
		"secrets.py":               "raise SystemExit('it hides one that is installed')",
		"lib/before.py":            "", // below PYTHONPATH: the user's own
		"lib/usercustomize.py":     "",
		"lib/sitecustomize.py":     "",
		"lib/importlib_before.txt": "",
	}, "train.py")
	program := s.Argv[len(s.Argv)-1]
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, append([]byte("import sys; before = list(sys.modules)\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	var warned warnings
	s.Warn = warned.add
	preload(t, &s, "auto")
	s.Preload.Strict = true
	exits(t, start(t, s))
	if want := "--preload: " + program + ":17 changes sys.path or the environment: auto does not stand for what is imported after that"; warned.String() != want {
		t.Errorf("warned %q, want %q", warned.String(), want)
	}
	for _, want := range []string{"found ['decimal', 'xml.dom', 'fractions', 'statistics']", "ran 1"} {
		if !strings.Contains(con.String(), want) {
			t.Errorf("no %q in\n%s", want, con)
		}
	}
}

// TestPreloadedEndWithGuard: nothing is left of workers and interpreter when the guard is killed.
func TestPreloadedEndWithGuard(t *testing.T) {
	s, con, _ := pythonSpec(t, 2, map[string]string{"lib/heavy.py": "import os\nnumber = os.getpid()",
		"train.py": "import heavy; print('imported by', heavy.number)\nimport time; time.sleep(1000)"}, "train.py")
	preload(t, &s, "heavy")
	g := start(t, s)
	interpreter := con.pids(t, "imported by", 2)[0]
	_ = syscall.Kill(s.Guard.Pid(), syscall.SIGKILL)
	for _, x := range exits(t, g) {
		if x.Cause != death.GuardLost {
			t.Errorf("%+v", x)
		}
	}
	gone(t, append(g.Pids(), interpreter)...)
	if p, ok := proc.Read(interpreter); ok && !p.Zombie {
		t.Errorf("%+v", p)
	}
}
