package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/gorun/gorun/scripts/internal/peers"
)

//go:embed peers/mpi.c
var mpiSource []byte

//go:embed peers/gloo.py
var glooSource []byte

// A contender is one way to communicate. Its command takes the operations to measure.
type contender struct {
	Name      string
	Transport string
	Version   string
	command   func(ranks int) []string
	triad     bool // it measures STREAM's triad, too
}

// A site holds what contenders are built from and started with.
type site struct {
	dir, gorun, self string
}

func newSite(dir string) (s site, err error) {
	s.dir = dir
	if s.self, err = os.Executable(); err != nil {
		return s, err
	}
	s.gorun, err = peers.Gorun(dir)
	return s, err
}

// contenders returns the contenders that this machine has and that use the transports, comm first, and lists what is missing.
func contenders(dir string, transports []string) (list []contender, missing []string, err error) {
	s, err := newSite(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range libraries {
		if l.missing() {
			missing = append(missing, fmt.Sprintf("%s is missing (apt-get install %s)", l.name, strings.Join(l.packages, " ")))
			continue
		}
		made, err := l.contenders(s)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", l.name, err)
		}
		list = append(list, made...)
	}
	return slices.DeleteFunc(list, func(c contender) bool { return !slices.Contains(transports, c.Transport) }), missing, nil
}

// launched returns a command that gorun starts. gloo's ranks also use gorun's variables to meet.
func (s site) launched(program ...string) func(int) []string {
	return func(ranks int) []string {
		return append([]string{s.gorun, "--nproc-per-node", strconv.Itoa(ranks)}, program...)
	}
}

func ours(s site) ([]contender, error) {
	return []contender{
		{Name: "comm", Transport: "shm", Version: runtime.Version(), command: s.launched(s.self, workerArg, "auto", "slices")},
		{Name: "comm alloc", Transport: "shm", Version: runtime.Version(), command: s.launched(s.self, workerArg, "auto", "alloc")},
		{Name: "comm tcp", Transport: "tcp", Version: runtime.Version(), command: s.launched(s.self, workerArg, "tcp", "slices")},
	}, nil
}

func gloo(s site) ([]contender, error) {
	python, script := peers.Python(), filepath.Join(s.dir, "gloo.py")
	c := contender{Name: "gloo", Transport: "tcp", command: s.launched("--numa-binding=none", python, script)} // it has threads beside
	c.Version = version(python, "-c", "import torch; print('torch', torch.__version__)")
	return []contender{c}, os.WriteFile(script, glooSource, 0o600)
}

// openMPI is fastest when bound to cores. With more ranks than cores it must be told so, because it then yields.
func openMPI(s site) ([]contender, error) {
	program, err := s.compile("mpicc.openmpi", "mpi.c", mpiSource)
	command := func(btl string) func(int) []string {
		return func(ranks int) []string {
			argv := []string{"mpirun.openmpi", "--allow-run-as-root", "-n", strconv.Itoa(ranks), "--mca", "btl", btl + ",self"}
			if ranks > runtime.NumCPU() {
				return append(argv, "--oversubscribe", program)
			}
			return append(argv, "--bind-to", "core", program)
		}
	}
	v := version("mpirun.openmpi", "--version")
	return []contender{
		{Name: "Open MPI", Transport: "shm", Version: v, command: command("vader"), triad: true},
		{Name: "Open MPI tcp", Transport: "tcp", Version: v, command: command("tcp")},
	}, err
}

// mpich itself has no setting for TCP. Debian's MPICH uses UCX, which has one, if nothing bypasses UCX.
func mpich(s site) ([]contender, error) {
	program, err := s.compile("mpicc.mpich", "mpi.c", mpiSource)
	command := func(settings ...string) func(int) []string {
		return func(ranks int) []string {
			argv := append([]string{"mpiexec.hydra", "-n", strconv.Itoa(ranks)}, settings...)
			if ranks <= runtime.NumCPU() {
				argv = append(argv, "-bind-to", "core")
			}
			return append(argv, program)
		}
	}
	v := version("mpiexec.hydra", "--version")
	return []contender{
		{Name: "MPICH", Transport: "shm", Version: v, command: command(), triad: true},
		{Name: "MPICH tcp", Transport: "tcp", Version: v, command: command("-genv", "MPIR_CVAR_NOLOCAL", "1", "-genv", "UCX_TLS", "tcp,self")},
	}, err
}

// compile compiles a program.
func (s site) compile(compiler, name string, text []byte) (string, error) {
	source, program := filepath.Join(s.dir, name), filepath.Join(s.dir, compiler+"."+name+".bench")
	if err := os.WriteFile(source, text, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command(compiler, "-O3", "-march=native", "-o", program, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", compiler, err, out)
	}
	return program, nil
}

var versionNumber = regexp.MustCompile(`\d+\.\d+\S*`)

// version is the first number with a point in it that a command prints.
func version(argv ...string) string {
	out, _ := exec.Command(argv[0], argv[1:]...).Output()
	return string(versionNumber.Find(out))
}
