package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// TestSnapshots: what the agent publishes is the job's life: states, rounds, workers with their exits and restarts, failures and events.
// What has been published does not change.
func TestSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 1,
			[]script{{after: time.Hour, code: 7}, {obeys: 0, takes: 5 * time.Second}},
			[]script{{after: time.Minute}, {after: 2 * time.Minute}})
		var published []*status.Node
		var texts []string
		s.config.Publish = func(n *status.Node) {
			published = append(published, n)
			texts = append(texts, fmt.Sprintf("%+v %+v", *n, n.Workers))
		}
		s.config.Status = status.Node{Gorun: "1.2", Pid: 7}
		if err := Run(t.Context(), s.config); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, n := range published {
			if again := fmt.Sprintf("%+v %+v", *n, n.Workers); again != texts[i] {
				t.Errorf("a snapshot has changed:\n%s\n%s", texts[i], again)
			}
			if n.Gorun != "1.2" || n.Pid != 7 || n.Job != "job" || n.Program != "prog" || n.Host != "here" || n.MaxRestarts != 1 || n.Version != status.Version {
				t.Fatalf("%+v", n)
			}
			line := string(n.State)
			if n.Round != nil {
				line += fmt.Sprintf(" round %d, %d used:", n.Round.ID, n.Round.Restarts)
			}
			for _, w := range n.Workers {
				line += fmt.Sprintf(" %d %s %d", w.Rank, w.State, w.Restarts)
			}
			if n.Failure != nil {
				line += fmt.Sprintf("; rank %d failed", n.Failure.Rank)
			}
			got = append(got, line)
		}
		want := []string{
			"joining",
			"running round 1, 0 used: 0 running 0 1 running 0",
			"stopping round 1, 0 used: 0 failed 0 1 running 0; rank 0 failed",
			"stopping round 1, 0 used: 0 failed 0 1 running 0; rank 0 failed", // the report is recorded, and the round is over
			"stopping round 1, 0 used: 0 failed 0 1 running 0; rank 0 failed",
			"stopping round 1, 0 used: 0 failed 0 1 stopped 0; rank 0 failed",
			"joining round 1, 0 used: 0 failed 0 1 stopped 0; rank 0 failed",
			"running round 2, 1 used: 0 running 1 1 running 1; rank 0 failed",
			"running round 2, 1 used: 0 succeeded 1 1 running 1; rank 0 failed",
			"running round 2, 1 used: 0 succeeded 1 1 succeeded 1; rank 0 failed",
			"finished round 2, 1 used: 0 succeeded 1 1 succeeded 1; rank 0 failed",
		}
		got, want = unique(got), unique(want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if first := published[len(published)-1].Events[0].Text; first != "round 1 begins with 1 node and 2 ranks" {
			t.Errorf("the first event is %q", first)
		}
		var kinds []status.Kind
		for _, e := range published[len(published)-1].Events {
			kinds = append(kinds, e.Kind)
		}
		if want := []status.Kind{status.KindRoundFormed, status.KindWorkerFailed, status.KindRoundOver, status.KindRoundFormed}; !reflect.DeepEqual(kinds[:len(want)], want) {
			t.Errorf("events %q, want %q", kinds, want)
		}
	})
}

// TestEntries: everything that happens is an entry once, in order: also a failure that is known before its worker has ended.
func TestEntries(t *testing.T) {
	crash := exited(1, -int(syscall.SIGKILL)).Death
	hangs := crash
	hangs.Cause, hangs.Why = death.Hang, "it made no progress"
	var got []string
	l := loop{Config: Config{Emit: func(e status.Entry) {
		line := fmt.Sprintf("%d %s", e.Round, e.Event)
		if e.Rank != nil {
			line += fmt.Sprintf(" rank %d", *e.Rank)
		}
		if e.ExitCode != nil {
			line += fmt.Sprintf(" code %d", *e.ExitCode)
		}
		got = append(got, strings.TrimSpace(line+" "+string(e.Cause)))
	}}}
	begin := func(id int, pids ...int) {
		l.round, l.gang = &rendezvous.Round{ID: id, Size: 1, Place: rendezvous.Place{WorldSize: len(pids)}}, pidsOf{pids: pids}
		l.record(started{len(pids)})
	}
	begin(1, 100, 101)
	l.record(workerExited{crash})
	l.record(roundOver{&rendezvous.NewRoundError{Gone: []rendezvous.GoneNode{goneNode}}})
	begin(2, 100, 102) // the first one survives
	l.record(hung{hangs})
	l.record(workerExited{hangs})
	l.record(workerExited{death.Death{ExitCode: -15, Stopped: true}})
	begin(3, 103, 104)
	l.record(workerExited{exited(1, 3).Death})
	l.record(commanded{Command{Kind: CommandStop}})
	want := []string{
		"1 round_formed", "1 worker_started rank 0", "1 worker_started rank 1", "1 worker_exited rank 1 code 137", "1 worker_failed rank 1 signal",
		"1 node_lost", "1 round_over",
		"2 round_formed", "2 worker_started rank 1", "2 worker_failed rank 1 hang", "2 worker_exited rank 1 code 137", "2 worker_exited rank 0 code 143",
		"3 round_formed", "3 worker_started rank 0", "3 worker_started rank 1", "3 worker_exited rank 1 code 3", "3 worker_failed rank 1 exit_code",
		"3 command",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if l.history.failure == nil || l.history.failure.Round != 3 || len(l.history.events) != 9 {
		t.Errorf("the last failure is %+v; %d events", l.history.failure, len(l.history.events))
	}
}

// pidsOf is a gang of which only the process numbers are known.
type pidsOf struct {
	Gang
	pids []int
}

func (g pidsOf) Pids() []int { return g.pids }

// unique removes lines that repeat the one before.
func unique(lines []string) (list []string) {
	for i, l := range lines {
		if i == 0 || l != lines[i-1] {
			list = append(list, l)
		}
	}
	return list
}

// ask sends a command after d of the job's time, and passes on the answer.
func ask(t *testing.T, d time.Duration, commands chan<- Command, kind CommandKind) <-chan Answer {
	t.Helper()
	answer := make(chan Answer, 1)
	time.AfterFunc(d, func() { commands <- Command{Kind: kind, Answer: answer} })
	return answer
}

// TestCommandRestart: another round follows at once, and uses no restart.
func TestCommandRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{obeys: 0, takes: 5 * time.Second}}, []script{{after: time.Second}})
		commands := make(chan Command)
		s.config.Commands = commands
		late := make(chan Answer, 1) // somebody who asks for the same, of another node, and comes late
		time.AfterFunc(time.Hour+5500*time.Millisecond, func() { commands <- Command{Kind: CommandRestart, Round: 1, Answer: late} })
		answer := ask(t, time.Hour, commands, CommandRestart)
		if err := Run(t.Context(), s.config); err != nil {
			t.Errorf("Run: %v", err)
		}
		s.wantStory("0s start", "0s port released", "1h0m0s stop terminated", "1h0m5s start", "1h0m5s port released")
		if a := <-answer; a.Err != nil {
			t.Errorf("refused: %v", a.Err)
		}
		if a := <-late; a.Err == nil || a.Err.Error() != "round 1 is over already" {
			t.Errorf("late: %v", a.Err)
		}
	})
}

// An absent rendezvous does not record that another round is wanted.
type absent struct{ rendezvous.Rendezvous }

func (absent) Restart(ctx context.Context, _ *rendezvous.Round, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestCommandTooEarly: before the first round, there is nothing to say of why there are no workers.
func TestCommandTooEarly(t *testing.T) {
	for kind, want := range map[CommandKind]string{
		CommandRestart: "its workers do not run (joining), so there is nothing to restart",
		CommandStacks:  "no worker runs (joining)",
	} {
		var m stateMachine
		if r, ok := m.onCommand(Command{Kind: kind})[0].(reply); !ok || r.err == nil || r.err.Error() != want {
			t.Errorf("%s: %+v, want %s", kind, r, want)
		}
	}
}

// TestCommandRestartIsAnswered: also while the etcd is away.
func TestCommandRestartIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{after: 2 * time.Minute}})
		commands := make(chan Command)
		s.config.Commands, s.config.Rendezvous = commands, absent{s.config.Rendezvous}
		answer := ask(t, time.Minute, commands, CommandRestart)
		took := make(chan time.Duration, 1)
		begun := time.Now()
		var a Answer
		go func() {
			a = <-answer
			took <- time.Since(begun)
		}()
		if err := Run(t.Context(), s.config); err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := <-took; took != time.Minute+restartTimeout || a.Err == nil || !strings.Contains(a.Err.Error(), "has not answered within 10s") {
			t.Errorf("after %v: %v", took, a.Err)
		}
	})
}

// TestCommandStop: the job ends as after SIGTERM, and says why.
func TestCommandStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{obeys: -1}})
		commands := make(chan Command)
		s.config.Commands = commands
		first, again := ask(t, time.Hour, commands, CommandStop), ask(t, time.Hour+time.Second, commands, CommandStop)
		restart, kill := ask(t, time.Hour+2*time.Second, commands, CommandRestart), ask(t, time.Hour+3*time.Second, commands, CommandKill)
		err := Run(t.Context(), s.config)
		stopped, ok := errors.AsType[*InterruptError](err)
		if !ok || stopped.Killed != 1 || !strings.HasPrefix(err.Error(), "stopped by gorun stop; 1 worker") {
			t.Errorf("Run: %v", err)
		}
		s.wantStory("0s start", "0s port released", "1h0m0s stop terminated", "1h0m3s kill")
		for i, c := range []struct {
			answer  <-chan Answer
			refused bool
		}{{first, false}, {again, false}, {restart, true}, {kill, false}} {
			if a := <-c.answer; (a.Err != nil) != c.refused {
				t.Errorf("command %d: %v", i, a.Err)
			}
		}
	})
}

// TestCommandDrain: a node leaves only if the others can go on.
func TestCommandDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{obeys: 0}})
		commands := make(chan Command)
		s.config.Commands = commands
		refused := ask(t, time.Hour, commands, CommandDrain)
		forced := make(chan Answer, 1)
		time.AfterFunc(2*time.Hour, func() { commands <- Command{Kind: CommandDrain, Force: true, Answer: forced} })
		if err := Run(t.Context(), s.config); err != nil {
			t.Errorf("Run: %v", err)
		}
		if a := <-refused; a.Err == nil || !strings.Contains(a.Err.Error(), "the job has 1 node and needs at least 1") {
			t.Errorf("the last node leaves: %v", a.Err)
		}
		if a := <-forced; a.Err != nil {
			t.Errorf("--force: %v", a.Err)
		}
		s.wantStory("0s start", "0s port released", "2h0m0s stop terminated")
	})
	round, _ := rendezvous.Begin(rendezvous.Round{Size: 3}, nil)
	if err := mayLeave(t.Context(), alone{}, round); err == nil || !strings.Contains(err.Error(), "it hosts the etcd") {
		t.Errorf("the node that hosts the etcd: %v", err)
	}
	if err := mayLeave(t.Context(), limited{}, round); err != nil {
		t.Errorf("one of three, of which two are enough: %v", err)
	}
	if err := mayLeave(t.Context(), limited{}, nil); err != nil {
		t.Errorf("before the first round: %v", err)
	}
}

// TestCommandDrainBetweenRounds: the last node does not leave while it starts another round.
func TestCommandDrainBetweenRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{obeys: 0, takes: 5 * time.Second}}, []script{{after: time.Second}})
		commands := make(chan Command)
		s.config.Commands = commands
		restart := ask(t, time.Hour, commands, CommandRestart)
		refused := ask(t, time.Hour+time.Second, commands, CommandDrain)
		if err := Run(t.Context(), s.config); err != nil {
			t.Errorf("Run: %v", err)
		}
		if a := <-restart; a.Err != nil {
			t.Error(a.Err)
		}
		if a := <-refused; a.Err == nil || !strings.Contains(a.Err.Error(), "the job has 1 node and needs at least 1") {
			t.Errorf("between two rounds: %v", a.Err)
		}
	})
}

// TestCommandDrainAsks: the rendezvous, which knows what the other nodes were asked to do, decides whether a node may leave.
func TestCommandDrainAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 0, []script{{obeys: 0}})
		commands := make(chan Command)
		s.config.Commands = commands
		answers := make(chan error, 2)
		answers <- errors.New("another one leaves")
		answers <- nil
		s.config.Rendezvous = drainable{s.config.Rendezvous, answers}
		refused := ask(t, time.Hour, commands, CommandDrain)
		agreed := ask(t, 2*time.Hour, commands, CommandDrain)
		if err := Run(t.Context(), s.config); err != nil {
			t.Errorf("Run: %v", err)
		}
		if a := <-refused; a.Err == nil || a.Err.Error() != "another one leaves" {
			t.Errorf("the first time: %v", a.Err)
		}
		if a := <-agreed; a.Err != nil {
			t.Errorf("the second time: %v", a.Err)
		}
		s.wantStory("0s start", "0s port released", "2h0m0s stop terminated")
	})
}

// drainable is a rendezvous that may lose all its nodes, and answers as it is told to.
type drainable struct {
	rendezvous.Rendezvous
	answers <-chan error
}

func (drainable) Limits() (least, most int)                        { return 0, 4 }
func (d drainable) Drain(context.Context, *rendezvous.Round) error { return <-d.answers }

// limited is a rendezvous of at least two nodes.
type limited struct{ rendezvous.Rendezvous }

func (limited) Limits() (least, most int)                      { return 2, 4 }
func (limited) Drain(context.Context, *rendezvous.Round) error { return nil }
func (limited) HostsAlone() bool                               { return false }

// alone is a rendezvous at this node, of at least two.
type alone struct{ limited }

func (alone) HostsAlone() bool { return true }
