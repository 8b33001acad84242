package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/env/alloctest"
)

const asRank = "GORUN_TEST_PMI" // makes the test binary a rank of mpiexec

func TestMain(m *testing.M) {
	if os.Getenv(asRank) == "" {
		os.Exit(m.Run())
	}
	fd, _ := strconv.Atoi(os.Getenv("PMI_FD"))
	rank, _ := strconv.Atoi(os.Getenv("PMI_RANK"))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	text, err := Broadcast(ctx, fd, rank, fmt.Sprintf("[fd00::%d]:1234", rank))
	fmt.Println(text, err)
}

// TestMPIExec: all ranks of MPICH's mpiexec get the text of rank 0, and mpiexec does not mind that they end.
func TestMPIExec(t *testing.T) {
	mpiexec, err := exec.LookPath("mpiexec.hydra")
	if err != nil {
		t.Skip("MPICH is not installed: apt-get install mpich")
	}
	for _, args := range [][]string{{"-n", "1"}, {"-n", "5"}, {"-launcher", "fork", "-hosts", "h1,h2", "-ppn", "2", "-n", "4"}} {
		cmd := exec.CommandContext(t.Context(), mpiexec, append(args, os.Args[0])...)
		cmd.Env = append(os.Environ(), asRank+"=1")
		out, err := cmd.CombinedOutput()
		n, _ := strconv.Atoi(args[len(args)-1])
		if want := strings.Repeat("[fd00::0]:1234 <nil>\n", n); err != nil || string(out) != want {
			t.Errorf("%q: %v\n got %s\nwant %s", args, err, out, want)
		}
	}
}

// serve answers as a process manager does, with changes: what it answers instead.
func serve(conn net.Conn, texts *sync.Map, barrier *sync.WaitGroup, changes map[string]string) {
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		fields := make(map[string]string)
		for word := range strings.FieldsSeq(lines.Text()) {
			name, value, _ := strings.Cut(word, "=")
			fields[name] = value
		}
		reply := ""
		switch cmd := fields["cmd"]; cmd {
		case "init":
			reply = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
		case "get_my_kvsname":
			reply = "cmd=my_kvsname kvsname=kvs_1"
		case "put":
			texts.Store(fields["key"], fields["value"])
			reply = "cmd=put_result rc=0 msg=success"
		case "barrier_in":
			barrier.Done()
			barrier.Wait()
			reply = "cmd=barrier_out"
		case "get":
			text, _ := texts.Load(fields["key"])
			reply = fmt.Sprintf("cmd=get_result rc=0 msg=success value=%v", text)
		case "finalize":
			reply = "cmd=finalize_ack"
		}
		if change, ok := changes[fields["cmd"]]; ok {
			reply = change
		}
		if _, err := conn.Write([]byte(reply + "\n")); err != nil {
			return
		}
	}
}

// all calls broadcast on some ranks of a manager.
func all(t *testing.T, limit time.Duration, ranks, absent int, mine string, changes map[string]string) (texts []string, errs []error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("out of time"))
	defer cancel()
	var kvs sync.Map
	var barrier, serving, calling sync.WaitGroup
	barrier.Add(ranks + absent)
	texts, errs = make([]string, ranks), make([]error, ranks)
	for rank := range ranks {
		here, there := net.Pipe()
		serving.Go(func() { serve(there, &kvs, &barrier, changes) })
		calling.Go(func() {
			texts[rank], errs[rank] = broadcast(ctx, here, rank, mine)
			_ = here.Close()
		})
	}
	calling.Wait()
	for range absent {
		barrier.Done()
	}
	serving.Wait()
	return texts, errs
}

func TestBroadcast(t *testing.T) {
	texts, errs := all(t, 20*time.Second, 4, 0, "10.0.0.1:5", nil)
	for rank := range texts {
		if texts[rank] != "10.0.0.1:5" || errs[rank] != nil {
			t.Errorf("rank %d got %q, %v", rank, texts[rank], errs[rank])
		}
	}
}

// TestAbsentRank: who waits for a rank that does not call, waits for as long as its context says.
func TestAbsentRank(t *testing.T) {
	_, errs := all(t, 50*time.Millisecond, 2, 1, "10.0.0.1:5", nil)
	for rank, err := range errs {
		if err == nil || err.Error() != "out of time" {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestWrongAnswers: what a manager says that is not of the protocol is an error, and so is a text that would change the lines.
func TestWrongAnswers(t *testing.T) {
	for _, c := range []struct{ cmd, reply, want string }{
		{"init", "cmd=response_to_init rc=-1", `after "cmd=init pmi_version=1 pmi_subversion=1": the process manager answers "cmd=response_to_init rc=-1\n"`},
		{"put", "cmd=put_result rc=1 msg=full", `the process manager answers "cmd=put_result rc=1 msg=full\n"`},
		{"get_my_kvsname", "hello", `the process manager answers "hello\n"`},
		{"get", "cmd=get_result rc=0", `rank 0 has sent ""`},
		{"get", "cmd=get_result rc=0 value=" + strings.Repeat("a", 257), "rank 0 has sent "},
		{"get", strings.Repeat("a", maxLine+1), "a line of more than 16384 bytes"},
	} {
		_, errs := all(t, 20*time.Second, 1, 0, "x", map[string]string{c.cmd: c.reply})
		if errs[0] == nil || !strings.Contains(errs[0].Error(), c.want) || len(errs[0].Error()) > 1000 {
			t.Errorf("%s: %v\nwant %s", c.cmd, errs[0], c.want)
		}
	}
	for _, bad := range []string{"", "a b", "a\nb", "a=b", strings.Repeat("a", 257)} {
		here, there := net.Pipe()
		if _, err := broadcast(t.Context(), here, 0, bad); err == nil {
			t.Errorf("%q can be sent", bad)
		}
		_, _ = here.Close(), there.Close()
	}
	if _, err := Broadcast(t.Context(), 999, 0, "x"); err == nil {
		t.Error("a descriptor that is not open")
	}
}

// FuzzAnswers: whatever the manager sends, the answer is a text, or an error of bounded length, and takes bounded memory.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=barrier_out\ncmd=get_result rc=0 value=h:1\ncmd=finalize_ack\n"))
	f.Add([]byte("cmd=\n=\n\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		alloctest.AtMost(t, 64<<10+64*min(len(sent), 5*maxLine), func() {
			text, err := broadcast(context.Background(), &recorded{sent: sent}, 1, "")
			if err == nil && !isText(text) || err != nil && len(err.Error()) > 2000 {
				t.Errorf("got %q, %v", text, err)
			}
		})
	})
}

// recorded is a stream on which all has been sent.
type recorded struct {
	net.Conn
	sent []byte
}

func (r *recorded) Write(b []byte) (int, error) { return len(b), nil }
func (r *recorded) Read(b []byte) (int, error) {
	if len(r.sent) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(b, r.sent)
	r.sent = r.sent[n:]
	return n, nil
}
