package comm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/testing/testkit"
)

// asReader is the variable with the address of a store. The test binary connects to it without a token, reads a key and
// sets it.
const asReader = "COMM_TEST_READER"

func runReader(store string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s, err := NewTCPStore(ctx, store, nil)
	if err != nil {
		fmt.Println(err)
		return ExitCode(err)
	}
	value, err := s.Get(ctx, "key")
	fmt.Printf("%s, %v, %v\n", value, err, s.Set(ctx, "key", []byte("changed")))
	return 0
}

// asUser returns a command that runs the test binary as another user, who has a settings directory of their own. Only
// root may start it.
func asUser(t *testing.T, uid int, environment ...string) *exec.Cmd {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		testkit.Cannot(t, "only root runs programs as other users")
	}
	settings, err := os.MkdirTemp("/tmp", "gorun-settings-*") //nolint:usetesting // others may not enter that of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.RemoveAll(settings)
		if uid != os.Geteuid() { // a program that cannot use its settings directory makes this one
			_ = os.RemoveAll(fmt.Sprint("/tmp/gorun-", uid))
		}
	})
	if err := os.Chown(settings, uid, uid); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe") // others may not enter the directory of os.Args[0]
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), append([]string{"XDG_CONFIG_HOME=" + settings, "TMPDIR=/tmp"}, environment...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	return cmd
}

// someUser returns the number of a user that exists nowhere. It is random, as others may run this test on this machine
// too.
func someUser() int { return 1_000_000 + rand.IntN(1_000_000_000) }

// asRank returns the environment of one of two ranks that meet at an address.
func asRank(address string, rank int) []string {
	host, port, _ := net.SplitHostPort(address)
	return []string{asWorker + "=sum", fmt.Sprint("RANK=", rank), "WORLD_SIZE=2", "MASTER_ADDR=" + host, "MASTER_PORT=" + port}
}

// refusal is the error that another user gets.
const refusal = "refused this user's own token, from %s/gorun/loopback-token: give ranks of several users, or in several containers, the same secret in GORUN_TOKEN: wrong token\n"

// TestAnotherUserReadsNothing: a program of another user can neither read nor change a store without a token. One of
// the same user can do both.
func TestAnotherUserReadsNothing(t *testing.T) {
	server, err := ListenStore("127.0.0.1:0", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	s, err := NewTCPStore(t.Context(), server.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Set(t.Context(), "key", []byte("value")); err != nil {
		t.Fatal(err)
	}
	_, own, err := auth.LoopbackToken()
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.TrimSuffix(own, "/gorun/loopback-token")

	cmd := asUser(t, someUser(), asReader+"="+server.Addr())
	theirs := settingsOf(cmd)
	out, err := cmd.Output()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if want := "store at " + server.Addr() + " " + fmt.Sprintf(refusal, theirs); string(out) != want || exit == nil || exit.ExitCode() != 2 {
		t.Errorf("another user got %v and %q\nwant %q", err, out, want)
	}
	if value, err := s.Get(t.Context(), "key"); string(value) != "value" {
		t.Errorf("after another user tried to change it: %q, %v", value, err)
	}

	cmd = asUser(t, someUser(), asReader+"="+server.Addr(), "XDG_CONFIG_HOME="+settings, "HOME=")
	if out, err := cmd.Output(); err == nil {
		t.Errorf("another user, who is told where the token is, got %q", out)
	}

	cmd = asUser(t, os.Geteuid(), asReader+"="+server.Addr(), "XDG_CONFIG_HOME="+settings)
	if out, err := cmd.Output(); string(out) != "value, <nil>, <nil>\n" {
		t.Errorf("the same user got %v and %q", err, out)
	}
}

// settingsOf returns the settings directory of a command from asUser.
func settingsOf(cmd *exec.Cmd) (path string) {
	for _, variable := range cmd.Env {
		if value, ok := strings.CutPrefix(variable, "XDG_CONFIG_HOME="); ok {
			path = value
		}
	}
	return path
}

// TestAnotherUserDoesNotJoin: ranks of several users form a world if they are given a token. Otherwise the error says
// so.
func TestAnotherUserDoesNotJoin(t *testing.T) {
	for _, c := range []struct {
		name  string
		token string
		uid   int
		joins bool
	}{
		{"another user", "", someUser(), false},
		{"the same user", "", os.Geteuid(), true},
		{"another user with the token", "a-secret-of-16-bytes-and-more", someUser(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			at := testkit.ReservedAddr(t)
			var zero sync.WaitGroup
			zero.Go(func() {
				g, err := Init(ctx, WithInitMethod("tcp://"+at), WithRank(0, 2), WithToken(c.token), WithLogger(nil))
				if err == nil {
					sum := []int{0}
					err = errors.Join(AllReduce(ctx, g, sum, Sum), g.Close())
				}
				if (err == nil) != c.joins {
					t.Errorf("rank 0: %v", err)
				}
			})
			cmd := asUser(t, c.uid, append(asRank(at, 1), "GORUN_TOKEN="+c.token)...)
			if c.uid == os.Geteuid() {
				cmd.Env = append(cmd.Env, "XDG_CONFIG_HOME="+os.Getenv("XDG_CONFIG_HOME"))
			}
			out, err := cmd.Output()
			if exit, _ := errors.AsType[*exec.ExitError](err); exit != nil {
				out = exit.Stderr
			}
			want := "sum 1\n"
			if !c.joins {
				want = "comm: Init: rank 0, which serves the store, has not come: store at " + at + " " + fmt.Sprintf(refusal, settingsOf(cmd))
			}
			if string(out) != want || (err == nil) != c.joins {
				t.Errorf("rank 1 got %v and %q\nwant %q", err, out, want)
			}
			cancel()
			zero.Wait()
		})
	}
}

// TestNoPlaceForAToken: where the file of the token can be made nowhere, the error says what to do, and nothing is left
// behind.
func TestNoPlaceForAToken(t *testing.T) {
	uid := someUser()
	taken := fmt.Sprint("/tmp/gorun-", uid)
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(taken)
	cmd := asUser(t, uid, append(asRank("127.0.0.1:29500", 1), "GORUN_TOKEN=", "XDG_CONFIG_HOME=/", "HOME=/")...)
	out, err := cmd.CombinedOutput()
	want := "comm: Init: there is no token, and your own cannot be used (" + taken + " belongs to another user): give every rank the same secret in GORUN_TOKEN\n"
	if err == nil || string(out) != want {
		t.Errorf("got %v and %q\nwant %q", err, out, want)
	}
	if _, err := os.Stat("/gorun"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("/gorun: %v", err)
	}
}

// TestATokenOnOneSide: when only one of two ranks was given a token, Init fails on both, even if they meet in a store
// that lets everybody in.
func TestATokenOnOneSide(t *testing.T) {
	store := NewMemStore()
	var ranks sync.WaitGroup
	for rank, token := range []string{"", longToken} {
		ranks.Go(func() {
			_, err := Init(t.Context(), WithStore(store), WithRank(rank, 2), WithToken(token), WithTimeout(20*time.Second), WithLogger(nil))
			want := fmt.Sprintf("comm: Init: rank %d on %s belongs to another user or container, or only one of the two was given a token: give every rank the same secret in GORUN_TOKEN", 1-rank, hostname(t))
			if !isArgument(err) || err.Error() != want {
				t.Errorf("rank %d: %v\nwant: %s", rank, err, want)
			}
		})
	}
	ranks.Wait()
}
