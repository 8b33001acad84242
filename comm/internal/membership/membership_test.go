package membership

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An agent is the other end of a membership's connection.
type agent struct {
	t    *testing.T
	conn net.Conn
	*Membership
}

// newAgent connects a process of a round to an agent, which is in round first.
func newAgent(t *testing.T, round, first int) *agent {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t}
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		if a.conn, err = ln.Accept(); err == nil {
			_, err = a.conn.Write(env.Encode(begun(first)))
		}
	}()
	m, connectErr := Connect(t.Context(), path, round)
	<-accepted
	if err := errors.Join(err, connectErr, ln.Close()); err != nil {
		t.Fatal(err)
	}
	a.Membership = m
	t.Cleanup(func() { _ = a.conn.Close(); <-m.Round().Final() })
	return a
}

func begun(round int, died ...death.Death) env.Round {
	return env.Round{Round: round, Env: map[string]string{"RANK": "0"}, Died: died}
}

func over(round int, died ...death.Death) env.Round {
	return env.Round{Round: round, Over: true, Died: died}
}

func dead(rank int) death.Death {
	return death.Death{Rank: rank, Host: "there", ExitCode: -9}
}

func (a *agent) say(r env.Round) {
	a.t.Helper()
	if _, err := a.conn.Write(env.Encode(r)); err != nil {
		a.t.Fatal(err)
	}
}

// isOver waits until the agent has said that the round is over, and that so many have died.
func (a *agent) isOver(round, died int) {
	a.t.Helper()
	r := a.Round()
	a.waitUntil(func() bool { return r.Over() != nil && len(r.Over().Died) == died })
	if <-r.Final(); r.Number != round || r.Over().Round != round {
		a.t.Errorf("round %d is over: %+v, want round %d", r.Number, r.Over(), round)
	}
}

// enters enters the next round and checks which one it is.
func (a *agent) enters(round int) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	defer cancel()
	if err := a.Await(ctx); err != nil {
		a.t.Fatal(err)
	}
	r, err := a.Enter()
	if err != nil || r.Round != round {
		a.t.Errorf("entered %+v, %v, want round %d", r, err, round)
	}
	line, err := bufio.NewReader(a.conn).ReadString('\n')
	if want := fmt.Sprintf("{\"round\":%d}\n", round); err != nil || line != want {
		a.t.Errorf("the agent reads %q, %v, want %q", line, err, want)
	}
}

// waitUntil waits until what the agent has said has been taken in.
func (a *agent) waitUntil(is func() bool) {
	a.t.Helper()
	for limit := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			a.t.Fatal("it does not happen")
		}
	}
}

// TestRounds: rounds end, each with more to say, and the next ones are entered.
func TestRounds(t *testing.T) {
	a := newAgent(t, 1, 1)
	if r := a.Round().Over(); r != nil {
		t.Errorf("round 1 is over: %+v", r)
	}
	a.say(over(7)) // of no interest
	a.say(over(1))
	a.isOver(1, 0)
	a.say(over(1, dead(2)))
	a.isOver(1, 1)
	if r := a.Round().Over(); r == nil || len(r.Died) != 1 {
		t.Errorf("the last word is %+v", r)
	}
	a.say(begun(2))
	a.enters(2)
	if r := a.Round().Over(); r != nil {
		t.Errorf("round 2 is over: %+v", r)
	}
	a.say(over(1, dead(3))) // about a round that it has left
	a.say(over(2))
	a.isOver(2, 0)
	a.say(begun(3))
	a.say(begun(5))
	a.waitUntil(func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.next != nil && a.next.Number == 5 })
	a.enters(5)
}

// TestTheNextRoundIsOverBeforeItIsEntered: when a round is entered, its end is known already.
func TestTheNextRoundIsOverBeforeItIsEntered(t *testing.T) {
	a := newAgent(t, 1, 1)
	a.say(begun(2, dead(1)))
	a.say(over(2, dead(2)))
	a.waitUntil(func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.next != nil && a.next.Over() != nil })
	if r := a.Round().Over(); r == nil || r.Round != 1 || r.Died[0].Rank != 1 {
		t.Errorf("the last word on round 1 is %+v", r)
	}
	a.enters(2)
	if r := a.Round().Over(); r == nil || r.Round != 2 || r.Died[0].Rank != 2 {
		t.Errorf("the last word on round 2 is %+v", r)
	}
	ctx, cancel := a.Round().During(t.Context())
	defer cancel()
	<-ctx.Done()
	if e, ok := errors.AsType[*OverError](context.Cause(ctx)); !ok || e.Error() != "round 2 is over: rank 2 on there: signal 9 (SIGKILL)" {
		t.Errorf("joining it ends with %v", context.Cause(ctx))
	}
}

// TestConnectedLate: a process of round 1 connects when the agent is in round 3.
func TestConnectedLate(t *testing.T) {
	a := newAgent(t, 1, 3)
	if r := a.Round().Over(); r == nil || r.Round != 1 {
		t.Errorf("the last word on round 1 is %+v", r)
	}
	a.enters(3)
}

// TestRevoke: a round that is over is not revoked, nor is the next one before it is entered.
func TestRevoke(t *testing.T) {
	a := newAgent(t, 1, 1)
	sent := bufio.NewReader(a.conn)
	revokes := func(want string) {
		t.Helper()
		if err := a.Revoke("rank 1 has left"); err != nil {
			t.Error(err)
		}
		if want == "" {
			return
		}
		if line, err := sent.ReadString('\n'); err != nil || line != want+"\n" {
			t.Errorf("the agent reads %q, %v, want %q", line, err, want)
		}
	}
	revokes(`{"round":1,"revoke":"rank 1 has left"}`)
	why := over(1)
	why.Why = "rank 0 on there: rank 1 has left"
	a.say(why)
	a.isOver(1, 0)
	revokes("")
	if e := (&OverError{*a.Round().Over()}); e.Error() != "round 1 is over: rank 0 on there: rank 1 has left" {
		t.Error(e)
	}
	a.say(begun(2))
	a.waitUntil(func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.next != nil })
	revokes("")
	if _, err := a.Enter(); err != nil {
		t.Fatal(err)
	}
	if line, err := sent.ReadString('\n'); err != nil || line != "{\"round\":2}\n" {
		t.Errorf("the agent reads %q, %v", line, err)
	}
	revokes(`{"round":2,"revoke":"rank 1 has left"}`)
}

// TestDuring: what is done in a round ends with it, and not before.
func TestDuring(t *testing.T) {
	a := newAgent(t, 1, 1)
	ctx, cancel := a.Round().During(t.Context())
	a.say(over(4))
	cancel()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("what has been done ends with %v", err)
	}
	ctx, cancel = a.Round().During(t.Context())
	defer cancel()
	a.say(over(1))
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.As(err, new(*OverError)) || err.Error() != "round 1 is over" {
		t.Errorf("what is under way ends with %v", err)
	}
}

// TestAwaitEnds: the error of a wait for a round says what is known of the round before.
func TestAwaitEnds(t *testing.T) {
	a := newAgent(t, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	await := func(ctx context.Context, want string) {
		t.Helper()
		if err := a.Await(ctx); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	await(ctx, "there is no round after round 1 yet: the agent has not said that round 1 is over: context canceled")
	a.say(over(1, dead(2)))
	a.isOver(1, 1)
	await(ctx, "there is no round after round 1 yet: round 1 is over: rank 2 on there: signal 9 (SIGKILL): context canceled")
	last := a.Round()
	go func() { _ = a.conn.Close() }()
	await(t.Context(), "round 1 is over: rank 2 on there: signal 9 (SIGKILL), and the agent tells of no more rounds: ")
	select {
	case <-last.Final():
	default:
		t.Error("the round may still end")
	}
}

// TestNonsense: if an agent sends nonsense, the membership reads no more from it.
func TestNonsense(t *testing.T) {
	a := newAgent(t, 1, 1)
	if _, err := fmt.Fprintln(a.conn, `{"round":0}`); err != nil {
		t.Fatal(err)
	}
	if err := a.Await(t.Context()); err == nil || !strings.Contains(err.Error(), "its round is 0") {
		t.Errorf("got %v", err)
	}
}
