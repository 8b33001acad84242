package launcher

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/launcher/spool"
)

// behaviours are the programs that the workers run: argv[1] names one, the rest are its arguments.
var behaviours map[string]func(args []string)

func init() {
	behaviours = map[string]func([]string){
		"exit":   func(a []string) { exit(number(a[0])) },
		"signal": func(a []string) { _ = syscall.Kill(os.Getpid(), syscall.Signal(number(a[0]))); block() },
		"wait":   func([]string) { fmt.Println("ready"); block() },
		"deaf":   func([]string) { signal.Ignore(syscall.SIGTERM); fmt.Println("ready"); block() },
		"polite": polite,
		"usr1":   usr1,
		"rank":   func([]string) { exit(number(os.Getenv("RANK"))) },
		"write":  write,
		"look":   look,
		"daemon": daemon,
		"middle": func([]string) { fmt.Printf("daemon %d\n", spawnDetached("deaf").Process.Pid) },
		"chatter": func([]string) {
			for {
				fmt.Println("and another line")
			}
		},
		"root": func([]string) { // of a setuid program: out of its user's reach
			if err := syscall.Setresuid(0, 0, 0); err != nil {
				fmt.Println("refused")
			}
			fmt.Println("ready")
			block()
		},
		"hup":          func([]string) { fmt.Println("SIGHUP ignored:", signal.Ignored(syscall.SIGHUP)) },
		"bound":        bound,
		"hog":          hog,
		"until":        until,
		"agent":        agentMain,
		"init":         initMain,
		"manygangs":    manyGangs,
		"runsprograms": runsPrograms,
	}
}

func number(s string) int { n, err := strconv.Atoi(s); must(err); return n }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func block() {
	for {
		time.Sleep(time.Hour)
	}
}

func polite([]string) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	fmt.Println("ready")
	<-term
	fmt.Println("bye")
	exit(5)
}

func usr1([]string) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	fmt.Println("ready")
	<-got
	exit(7)
}

// write writes to stdout and stderr what the arguments say, as Go strings, and exits with the last one's code.
func write(args []string) {
	for i, file := range []*os.File{os.Stdout, os.Stderr} {
		s, err := strconv.Unquote(`"` + args[i] + `"`)
		must(err)
		_, err = file.WriteString(s)
		must(err)
	}
	exit(number(args[2]))
}

// look says what the worker finds itself with.
func look(args []string) {
	fds, err := filepath.Glob("/proc/self/fd/*")
	must(err)
	var open []string
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		runtimes := strings.HasPrefix(target, "anon_inode:") || strings.HasPrefix(target, "/sys/fs/cgroup/")
		if err == nil && !runtimes { // inherited
			open = append(open, filepath.Base(fd))
		}
	}
	nonblocking := false
	for fd := range uintptr(3) {
		flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0)
		nonblocking = nonblocking || flags&syscall.O_NONBLOCK != 0
	}
	self, _ := proc.Read(os.Getpid())
	stdin, _ := os.Readlink("/proc/self/fd/0")
	wd, _ := os.Getwd()
	fmt.Printf("fds=%v nonblocking=%v leadsGroup=%v inGuardsSession=%v stdin=%s args=%q env=%q wd=%s ignored=%v%v\n", open, nonblocking,
		self.Group == self.Pid, self.Session == self.Parent, stdin, args, os.Environ(), wd, signal.Ignored(syscall.SIGTERM), signal.Ignored(syscall.SIGINT))
}

// bound says which CPUs the worker may run on, and how it gets memory.
func bound([]string) {
	maps, err := os.ReadFile("/proc/self/numa_maps")
	must(err)
	policy := "default" // of the main thread; a mapping has the same
	if fields := strings.Fields(string(maps)); len(fields) > 1 {
		policy = fields[1]
	}
	fmt.Println(affinity(), policy)
}

// affinity is which CPUs the calling thread may run on.
func affinity() (cpus []int) {
	var set unix.CPUSet
	must(unix.SchedGetaffinity(0, &set))
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// daemon leaves a daemon behind, two forks and two sessions away, which holds stdout and ignores SIGTERM; then it does what its
// arguments say.
func daemon(args []string) {
	must(spawnDetached("middle").Wait())
	behaviours[args[0]](args[1:])
}

func spawnDetached(behaviour string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", behaviour)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(cmd.Start())
	return cmd
}

// agentMain is an agent for tests that kill it: its arguments are a Spec.TempDir, and the workers' argv. It prints the guard's and the workers' pids, their output and their exits, and kills them when stdin
// ends.
func agentMain(args []string) {
	g, err := Start(context.Background(), Spec{Argv: args[1:], Workers: workersOf(2), TempDir: args[0],
		Stdout: os.Stdout, Stderr: os.Stderr, Spool: spool.New(), Warn: func(msg string) { fmt.Println("warning:", msg) }})
	must(err)
	fmt.Printf("guard %d\nworker %d\nworker %d\n", g.guard.Load().Pid(), g.Pids()[0], g.Pids()[1])
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		g.Kill()
	}()
	for e := range g.Exits() {
		fmt.Printf("exit of %d: %v, out of memory: %v\n", e.LocalRank, e, e.OutOfMemory)
	}
	drain(g)
}
