package env_test

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/testing/testkit"
)

var died = []death.Death{{Rank: 3, LocalRank: 1, Host: "node-b", Pid: 4711, ExitCode: -9, OutOfMemory: true, Cause: death.Hang, Stderr: []string{"boom"}}}

// TestDocuments: what is written is read, however it comes in pieces.
func TestDocuments(t *testing.T) {
	w := env.Worker{Rank: 2, WorldSize: 4, MasterAddr: "10.0.0.7", MasterPort: 29500, Round: 2, Token: "secret"}
	next := env.Round{Round: 2, Env: map[string]string{}, Died: died}
	for _, kv := range w.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		next.Env[name] = value
	}
	sent := []env.Round{{Round: 1, Over: true, Died: died}, next}
	var text []byte
	for _, r := range sent {
		text = append(append(text, env.Encode(r)...), '\n') // an empty line says nothing
	}
	reader := env.NewReader[env.Round](iotest.OneByteReader(strings.NewReader(string(text))))
	for _, want := range sent {
		if got, err := reader.Read(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, %v", got, err)
		}
	}
	if _, err := reader.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %v", err)
	}
	if got, err := next.Worker(); err != nil || got != w {
		t.Errorf("the worker is %+v, %v", got, err)
	}
}

// TestMessages: what a worker sends is read as it was meant, and a reason is one line of some length.
func TestMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := ln.Accept()
		if err == nil {
			_, err = conn.Write(env.Encode(env.Round{Round: 1, Over: true}))
		}
		if accepted <- conn; err != nil {
			t.Error(err)
		}
	}()
	c, err := env.Connect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	agent := <-accepted
	defer func() { _ = errors.Join(c.Close(), agent.Close()) }()
	long := strings.Repeat("é", 1000)
	if err := errors.Join(c.Enter(2), c.Revoke(2, " rank 1\n has left "), c.Revoke(3, ""), c.Revoke(4, "x"+long), c.Revoke(5, "they are missing", 1, 3)); err != nil {
		t.Fatal(err)
	}
	reader := env.NewReader[env.Message](agent)
	for _, want := range []env.Message{{Round: 2}, {Round: 2, Revoke: "rank 1 has left"}, {Round: 3, Revoke: "it does not say why"}, {Round: 4, Revoke: "x" + long[:1022] + "..."}, {Round: 5, Revoke: "they are missing", Missing: []int{1, 3}}} {
		if got, err := reader.Read(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, %v, want %+v", got, err, want)
		}
	}
}

// TestUnknownEnding: a worker's node is gone, and nobody claims to know how the worker ended.
func TestUnknownEnding(t *testing.T) {
	gone := env.Round{Round: 1, Over: true, Died: []death.Death{{Rank: 2, Host: "node-b", Cause: death.Unknown, Why: "its node is lost"}}}
	want := `{"round":1,"over":true,"died":[{"rank":2,"local_rank":0,"host":"node-b","cause":"unknown","why":"its node is lost","reason":"its node is lost"}]}` + "\n"
	if got := string(env.Encode(gone)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestBadDocuments(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{}\n", "its round is 0"},
		{`{"round":-1,"over":true}` + "\n", "its round is -1"},
		{`{"round":1}` + "\n", "want a round that is over, or the environment"},
		{`{"round":1,"over":true,"env":{"RANK":"0"}}` + "\n", "want a round that is over, or the environment"},
		{`{"round":1,"over":true,"died":[{"rank":-1}]}` + "\n", "rank -1"},
		{`{"round":1,"over"`, "unexpected EOF"},
		{"nonsense\n", "invalid character"},
		{strings.Repeat("x", env.MaxLine+1), "more than 1048576 bytes"},
	} {
		testkit.AllocatesAtMost(t, 8*env.MaxLine, func() {
			if _, err := env.NewReader[env.Round](strings.NewReader(c.text)).Read(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.80q: %v, want %q", c.text, err, c.want)
			}
		})
	}
	if _, err := env.NewReader[env.Message](strings.NewReader("{}\n")).Read(); err == nil {
		t.Error("an answer without a round was read")
	}
}

// TestLongRound: a document that is too long loses the lines on stderr, those of the last of the dead first, and then some of the dead.
func TestLongRound(t *testing.T) {
	for _, c := range []struct{ dead, text int }{{1, 100}, {1, 2 << 20}, {30, 50_000}, {20_000, 0}, {20_000, 40}} {
		long := env.Round{Round: 1, Over: true}
		for rank := range c.dead {
			long.Died = append(long.Died, death.Death{Rank: rank, Stderr: []string{strings.Repeat("x", c.text)}})
		}
		line := env.Encode(long)
		got, err := env.NewReader[env.Round](strings.NewReader(string(line))).Read()
		if err != nil || len(line) > env.MaxLine || len(got.Died) == 0 || len(long.Died) != c.dead || long.Died[c.dead-1].Stderr == nil {
			t.Fatalf("%+v: %d bytes: %d dead, %v", c, len(line), len(got.Died), err)
		}
		for i, d := range got.Died {
			if d.Rank != i || d.Stderr != nil && len(d.Stderr[0]) != c.text {
				t.Fatalf("%+v: the dead at %d is %.100v", c, i, d)
			}
		}
		t.Logf("%+v: %d bytes, %d dead, the first with %d lines", c, len(line), len(got.Died), len(got.Died[0].Stderr))
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"round":1,"over":true,"died":[{"rank":3}]}` + "\n"))
	f.Add([]byte(`{"round":2,"env":{"RANK":"0"}}` + "\n\n" + `{"round":3}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		reader := env.NewReader[env.Round](strings.NewReader(string(b)))
		for {
			r, err := reader.Read()
			if err != nil {
				return
			}
			again, err := env.NewReader[env.Round](strings.NewReader(string(env.Encode(r)))).Read()
			if err != nil || again.Round != r.Round || again.Over != r.Over {
				t.Fatalf("%+v was read back as %+v, %v", r, again, err)
			}
			if _, err := r.Worker(); err != nil && !errors.As(err, new(*env.Error)) {
				t.Fatal(err)
			}
		}
	})
}
