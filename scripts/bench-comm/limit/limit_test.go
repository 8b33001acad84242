package limit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/scripts/bench-comm/pattern"
)

// ranks are goroutines, of which each returns an error or nil.
type ranks struct {
	group  sync.WaitGroup
	mutex  sync.Mutex
	failed error
}

func (r *ranks) Go(f func() error) {
	r.group.Go(func() {
		err := f()
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.failed = errors.Join(r.failed, err)
	})
}

func (r *ranks) Wait() error {
	r.group.Wait()
	return r.failed
}

// newMeshes returns ranks of this process, connected by socket pairs.
func newMeshes(t *testing.T, size int) []*mesh {
	t.Helper()
	list := make([]*mesh, size)
	for i := range list {
		list[i] = &mesh{rank: i, peers: make([]int, size)}
		list[i].peers[i] = -1
	}
	for i := range size {
		for k := range i {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				t.Fatal(err)
			}
			for n, fd := range pair {
				if err := unix.SetNonblock(fd, true); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = unix.Close(fd) })
				list[[]int{i, k}[n]].peers[[]int{k, i}[n]] = fd
			}
		}
	}
	return list
}

// TestEngine carries out every way of all_reduce with both kinds of wait, and checks the sums.
func TestEngine(t *testing.T) {
	const size = 4
	for _, elements := range []int{size, 300 << 10} { // more than a socket and scratch hold
		n := elements * pattern.Element
		first, err := pattern.Ways("all_reduce", 0, size, n)
		if err != nil {
			t.Fatal(err)
		}
		meshes := newMeshes(t, size)
		engines := make([]*engine, size)
		for i, m := range meshes {
			engines[i] = newEngine(m)
		}
		for way := range first {
			var group ranks
			for rank, e := range engines {
				group.Go(func() error {
					ways, err := pattern.Ways("all_reduce", rank, size, n)
					if err != nil {
						return err
					}
					w := ways[way]
					e.parked = rank%2 == 0
					e.memory = make([]byte, w.Memory)
					a := floats(e.memory[:n])
					for i := range a {
						a[i] = float32(rank + i%7)
					}
					if err := e.perform(w); err != nil {
						return err
					}
					for i, f := range a {
						if want := float32(size*(size-1)/2 + size*(i%7)); f != want {
							return fmt.Errorf("%s, rank %d: element %d is %v, want %v", w.Name, rank, i, f, want)
						}
					}
					return nil
				})
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSlowest(t *testing.T) {
	const size = 5
	var group ranks
	for _, m := range newMeshes(t, size) {
		group.Go(func() error {
			got, err := newEngine(m).slowest(float64(m.rank))
			if err != nil || got != size-1 {
				return fmt.Errorf("rank %d: %v, %v", m.rank, got, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestPeerThatEnds: a rank says which other rank has ended.
func TestPeerThatEnds(t *testing.T) {
	m := newMeshes(t, 2)
	if err := unix.Shutdown(m[1].peers[0], unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	if _, err := newEngine(m[0]).slowest(0); err == nil || err.Error() != "rank 0, rank 1: unexpected EOF" {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"go all_reduce 64 hot":          "4 arguments, want PROGRAM OPS SIZES STATES SECONDS",
		"go all_reduce 64,x hot 1":      `size "x": want a number of bytes`,
		"go all_reduce -4 hot 1":        `size "-4": want a number of bytes`,
		"go all_reduce 64 cold 1":       `state "cold": want hot or dirty`,
		"go all_reduce 64 hot NaN":      `seconds "NaN": want more than 0`,
		"go all_reduce 64 hot,dirty .1": "",
	} {
		got := ""
		if _, err := parse(strings.Fields(args)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	if _, err := (plan{ops: []string{"all_reduce"}, sizes: []int{6}}).tests(0, 2); err == nil {
		t.Error("half an element is no error")
	}
}

// TestProgram runs the program in C with the ranks of all operations, and checks that it refuses what it cannot do.
func TestProgram(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip(err)
	}
	program := filepath.Join(t.TempDir(), "limit")
	if out, err := exec.Command(gcc, "-O1", "-fsanitize=address,undefined", "-Wall", "-Wextra", "-Werror", "-o", program, "../peers/limit.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(m *mesh, tests string) (string, error) {
		cmd := exec.Command(program, fmt.Sprint(m.rank), "1e-4", "3")
		list, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := list.WriteString(tests); err != nil {
			t.Fatal(err)
		}
		if _, err := list.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = list.Close() }()
		cmd.ExtraFiles = []*os.File{list}
		for _, fd := range m.peers {
			if fd < 0 {
				cmd.Args = append(cmd.Args, "-1")
				continue
			}
			copied, err := unix.Dup(fd)
			if err != nil {
				t.Fatal(err)
			}
			f := os.NewFile(uintptr(copied), "")
			defer func() { _ = f.Close() }() //nolint:revive // few
			cmd.Args = append(cmd.Args, fmt.Sprint(3+len(cmd.ExtraFiles)))
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const size = 3
	p := plan{ops: strings.Split("all_reduce,reduce,broadcast,all_gather,reduce_scatter,all_to_all,sendrecv,barrier", ","), sizes: []int{12, 786432}, states: []string{"hot", "dirty"}}
	var group ranks
	var printed string
	for _, m := range newMeshes(t, size) {
		group.Go(func() error {
			tests, err := p.tests(m.rank, size)
			if err != nil {
				return err
			}
			var text bytes.Buffer
			if err := p.write(&text, tests); err != nil {
				return err
			}
			out, err := run(m, text.String())
			if m.rank == 0 {
				printed = out
			}
			if err != nil {
				return fmt.Errorf("rank %d: %w: %s", m.rank, err, out)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if want := 7*2*2 + 1; strings.Count(printed, "\n") != want || strings.Count(printed, "result ") != want {
		t.Errorf("it prints %d lines, want %d:\n%s", strings.Count(printed, "\n"), want, printed)
	}
	for tests, want := range map[string]string{
		"test all_reduce 8 8 16 1 0 1 way x 1 step 1 s 1 0 12 8": "a move beyond memory",
		"test all_reduce 8 8 16 1 0 1 way x 1 step 1 s 2 0 0 8":  "a move beyond memory",
		"test all_reduce 8 8 16 1 0 1 way x 1 step 1 q 1 0 0 8":  "no move",
		"test all_reduce 8 8 16 1 0 1 way x 1 step 9":            "no step",
		"test all_reduce 8 8 16 1 0 1 way x -1":                  "no way",
		"test all_reduce 8 32 16 1 0 1":                          "a bad test",
		"text":                                                   "the tests end with something else",
	} {
		if out, err := run(newMeshes(t, 2)[0], tests); err == nil || out != "limit: rank 0: "+want+"\n" {
			t.Errorf("%s: %v, %s, want %s", tests, err, out, want)
		}
	}
}

// TestStrangers: only ranks that are missing, and hold the token, become a part of the mesh.
func TestStrangers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := admission.Listen(l, admission.Config{})
	defer func() { _ = listener.Close() }()
	m := &mesh{rank: 1, peers: []int{-1, -1, -1}}
	token := []byte("a token of a test, long enough")
	accepted := make(chan error, 1)
	go func() { accepted <- m.accept(listener, token) }()
	for _, c := range []struct {
		token string
		hello []byte
		want  error
	}{
		{"another token of another test", binary.BigEndian.AppendUint32(nil, 2), auth.ErrWrongToken},
		{string(token), binary.BigEndian.AppendUint32(nil, 0), errRefused},
		{string(token), binary.BigEndian.AppendUint32(nil, 3), errRefused},
		{string(token), binary.BigEndian.AppendUint32(nil, math.MaxUint32), errRefused},
		{string(token), []byte("rank 2"), errRefused},
		{string(token), binary.BigEndian.AppendUint32(nil, 2), nil},
	} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }() //nolint:revive // few
		_, err = auth.Dial(conn, []byte(c.token), c.hello)
		if refused := new(auth.RefusedError); errors.As(err, &refused) {
			err = errRefused
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%x: %v, want %v", c.hello, err, c.want)
		}
	}
	if err := <-accepted; err != nil || m.peers[2] < 0 {
		t.Errorf("%v, %v", m.peers, err)
	}
	_ = unix.Close(m.peers[2])
}

var errRefused = errors.New("refused")
