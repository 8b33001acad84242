package comm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

// refuseCalls names system calls, by number, that the kernel refuses a worker process, and the error.
const refuseCalls = "COMM_TEST_REFUSE"

// noFilter is the exit code of a worker process that cannot have its system calls refused.
const noFilter = 3

func init() {
	workerPrograms["everything"] = everything
	if refused := os.Getenv(refuseCalls); refused != "" {
		if err := refuse(strings.Fields(refused)); err != nil {
			fmt.Fprintln(os.Stderr, "no filter:", err)
			os.Exit(noFilter)
		}
	}
}

// refuse makes the kernel refuse system calls to this process from now on, as the filters of containers do. The first
// number is the error.
func refuse(numbers []string) error {
	var list []uint32
	for _, n := range numbers {
		number, err := strconv.ParseUint(n, 10, 16)
		if err != nil {
			return err
		}
		list = append(list, uint32(number))
	}
	refusal, calls := unix.SECCOMP_RET_ERRNO|list[0], list[1:]
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the number of the call
	for i, n := range calls {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(calls) - i), K: n})
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW}, unix.SockFilter{Code: unix.BPF_RET, K: refusal})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return errno
	}
	return nil
}

// everything moves short and long vectors in every way: by collectives, in memory of Alloc and in other memory, and as
// messages.
func everything(ctx context.Context, g *Group) error {
	next, before := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
	for _, n := range []int{1, 100_000} {
		shared, err := Alloc[int64](g, n)
		if err != nil {
			return err
		}
		sum := int64(g.Size() * (g.Size() - 1) / 2)
		for _, buf := range [][]int64{make([]int64, n), shared} {
			mine := func(int) int64 { return int64(g.Rank()) }
			repeat(buf, 1, mine)
			if err := samePeriods("AllReduce", AllReduce(ctx, g, buf, Sum), buf, func(int) int64 { return sum }); err != nil {
				return err
			}
			repeat(buf, 1, mine)
			if err := samePeriods("Broadcast", Broadcast(ctx, g, buf, 1), buf, func(int) int64 { return 1 }); err != nil {
				return err
			}
			all := make([]int64, g.Size()*n)
			repeat(buf, 1, mine)
			err := AllGather(ctx, g, all, buf)
			for r := range g.Size() {
				err = errors.Join(err, samePeriods("AllGather", err, all[r*n:][:n], func(int) int64 { return int64(r) }))
			}
			out := ISend(g, buf, next)
			_, got := Recv(ctx, g, all[:n], before)
			err = errors.Join(err, out.Wait(ctx), samePeriods("Recv", got, all[:n], func(int) int64 { return int64(before) }))
			if err != nil {
				return err
			}
		}
		if err := MemFree(shared); err != nil {
			return err
		}
	}
	return printSum(ctx, g)
}

// TestRefusedCalls: containers and old kernels refuse system calls. Ranks then do without, and nobody sees a difference
// in the results.
func TestRefusedCalls(t *testing.T) {
	calls := map[string]int{
		"memfd_create": unix.SYS_MEMFD_CREATE, "pidfd_open": unix.SYS_PIDFD_OPEN,
		"membarrier": unix.SYS_MEMBARRIER, "fallocate": unix.SYS_FALLOCATE, "mremap": unix.SYS_MREMAP, "sched_setaffinity": unix.SYS_SCHED_SETAFFINITY,
		"sched_getaffinity": unix.SYS_SCHED_GETAFFINITY, "getcpu": unix.SYS_GETCPU, "inotify_init1": unix.SYS_INOTIFY_INIT1,
	}
	type refusal struct {
		error   unix.Errno
		numbers []int
	}
	cases := map[string]refusal{}
	all := refusal{error: unix.ENOSYS}
	alone := []string{"memfd_create", "pidfd_open", "membarrier"} // others would show nothing new
	for name, n := range calls {
		if slices.Contains(alone, name) || !testing.Short() {
			cases[name] = refusal{unix.EPERM, []int{n}}
		}
		all.numbers = append(all.numbers, n)
	}
	slices.Sort(all.numbers)
	cases["all"] = all
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			refused := strings.Trim(fmt.Sprint(append([]int{int(c.error)}, c.numbers...)), "[]")
			wantEverything(t, startProcessesAs(t, "everything", 3, func(_ int, cmd *exec.Cmd) { cmd.Env = append(cmd.Env, refuseCalls+"="+refused) }))
		})
	}
}

func wantEverything(t *testing.T, ps []*rankProcess) {
	t.Helper()
	for r, p := range ps {
		out, _ := io.ReadAll(p.stdout)
		if err := p.cmd.Wait(); p.cmd.ProcessState.ExitCode() == noFilter {
			testkit.Cannot(t, "%s", p.stderr.String())
		} else if string(out) != "sum 3\n" || err != nil {
			t.Errorf("rank %d printed %q and ended with %v: %s", r, out, err, p.stderr.String())
		}
	}
}

// TestDeathWithoutPidfds: a rank whose process cannot be looked at is known to be lost, if not that it has died.
func TestDeathWithoutPidfds(t *testing.T) {
	t.Setenv(refuseCalls, fmt.Sprintf("%d %d", unix.EPERM, unix.SYS_PIDFD_OPEN))
	wantKilledNamed(t, startProcesses(t, "loop", 2), "the connection to it was lost (closed without goodbye)")
}

// TestFullDevShm: what ranks share takes no room of /dev/shm, which has only 64 MB in containers.
func TestFullDevShm(t *testing.T) {
	wantEverything(t, startProcessesAs(t, "everything", 3, func(_ int, cmd *exec.Cmd) {
		const full = `set -e; mount --make-rprivate /; mount -t tmpfs -o size=4k tmpfs /dev/shm; head -c 4096 /dev/zero >/dev/shm/full; exec "$0"`
		cmd.Args = []string{"sh", "-c", full, cmd.Path}
		cmd.Path = "/bin/sh"
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	}))
}
