package cli

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

func TestExitCode(t *testing.T) {
	failed := &agent.WorkerError{Code: 139}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{failed, 139},
		{&agent.WorkerError{Code: agent.NoRestart}, 93},
		{&agent.InterruptError{Signal: syscall.SIGTERM}, 143},
		{usagef("no"), 2},
		{&launcher.BuildError{}, 2},
		{&launcher.NotExecutableError{}, 126},
		{&launcher.NotFoundError{}, 127},
		{&agent.StartError{Err: &launcher.NotFoundError{}}, 127},
		{&agent.StartError{Err: &network.PortError{Port: 29500, Err: syscall.EADDRINUSE}}, 2},
		{&agent.StartError{Err: &network.PortError{Err: syscall.EADDRINUSE}}, 75},
		{&agent.StartError{Err: fmt.Errorf("%w: choose one", &network.PortError{Host: "::1", Err: syscall.EADDRNOTAVAIL})}, 2},
		{&agent.StartError{Err: rendezvous.ErrClosed}, 75},
		{&agent.StartError{Err: fmt.Errorf("cannot start local rank 3: %w", syscall.EAGAIN)}, 71},
		{&agent.StartError{Err: fmt.Errorf("pipe: %w", syscall.EMFILE)}, 71},
		{&agent.StartError{Err: &network.PortError{Err: syscall.EMFILE}}, 71},
		{fmt.Errorf("cannot start the guard of the workers: %w", syscall.ENOMEM), 71},
		{&rendezvous.ClosedError{Outcome: rendezvous.Outcome{Code: 7, Reason: "too few nodes"}}, 7},
		{&rendezvous.ClosedError{Outcome: rendezvous.Outcome{Reason: "no code"}}, 1},
		{&rendezvous.ClosedError{Outcome: rendezvous.Outcome{Code: -1, Reason: "no exit code"}}, 1},
		{&agent.WorkerError{Code: 256}, 1}, // of which the system would make 0
		{errors.New("unforeseen"), 1},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%T %v: exit code %d, want %d", c.err, c.err, got, c.want)
		}
	}
}

func TestExplain(t *testing.T) {
	if got := explain(self, errors.Join(errors.New("one"), errors.New("two")), false); got != "gorun: one; two\n" {
		t.Errorf("got %q", got)
	}
	failed := &agent.WorkerError{Program: "train.py"}
	if got := explain(self, failed, false); got != failed.Summary() {
		t.Errorf("got %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"nprocs", "nproc", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
	word := rapid.StringMatching(`[a-c]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		ab, ba, bc, ac := distance(a, b), distance(b, a), distance(b, c), distance(a, c)
		if ab != ba || (ab == 0) != (a == b) || ac > ab+bc {
			t.Fatalf("not a distance: %q %q %q: %d %d %d %d", a, b, c, ab, ba, bc, ac)
		}
	})
}

func TestHelpAndManualNameEveryFlag(t *testing.T) {
	for _, text := range []string{flagsHelp(), strings.ReplaceAll(manual(), `\-`, "-")} {
		for i := range table {
			if !strings.Contains(text, "--"+table[i].name) {
				t.Errorf("--%s is missing", table[i].name)
			}
		}
	}
	for line := range strings.Lines(help() + flagsHelp()) {
		if len(line) > helpWidth+1 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// TestEveryCommandHasHelp: also those that users do not know.
func TestEveryCommandHasHelp(t *testing.T) {
	root := newCommand(host{}, nil)
	addCommands(root, host{}, nil, nil, nil, nil)
	for _, cmd := range root.Commands() {
		if cmd.Name() == "run" {
			continue // its help is that of gorun
		}
		if cmd.Short == "" {
			t.Errorf("gorun %s --help cannot say what it is for", cmd.Name())
		} else if text := commandHelp(cmd); !strings.HasPrefix(text, "gorun "+cmd.Name()+": ") {
			t.Errorf("gorun %s --help: %s", cmd.Name(), text)
		}
	}
}

func TestShell(t *testing.T) {
	if got, want := shell([]string{"a", "", "I'm 6' tall", "x=$y", "--z=1,2"}), `a '' 'I'\''m 6'\'' tall' 'x=$y' --z=1,2`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestIsUTF8(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, true},
		{map[string]string{"LANG": "C"}, true},
		{map[string]string{"LANG": "de_DE.UTF-8"}, true},
		{map[string]string{"LANG": "zh_CN.GBK"}, false},
		{map[string]string{"LANG": "zh_CN.GBK", "LC_ALL": "C.utf8"}, true},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_CTYPE": "de_DE.ISO-8859-15@euro"}, false},
	} {
		if got := isUTF8(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }); got != c.want {
			t.Errorf("%v: %t", c.env, got)
		}
	}
}
