package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// TestJobChanges: a change that has been read already, or that decides nothing, does not cause a read.
func TestJobChanges(t *testing.T) {
	t.Parallel()
	k := keysOf(DefaultPrefix, "job")
	const put, remove = false, true
	const status = `{"version":2,"is":{"wait":"news"}}`
	for _, c := range []struct {
		what   string
		gone   bool
		key    string
		rev    int64
		text   string
		read   bool
		status string
	}{
		{"a round", put, k.current(), 11, "", true, "before"},
		{"a round that has been read", put, k.current(), 10, "", false, "before"},
		{"the end", put, k.state(), 11, "", true, "before"},
		{"a leader", put, k.leader(), 11, `{"version":2,"is":{"key":"k","host":"h"}}`, false, "before"},
		{"a leader's end", remove, k.leader(), 11, "", true, "before"},
		{"a status", put, k.status(), 11, status, false, "news"},
		{"a status from before", put, k.status(), 9, status, false, "before"},
		{"a status that is none", put, k.status(), 11, "nonsense", true, "before"},
	} {
		m := idle()
		m.conn.view = &view{rev: 10, status: statusDoc{"before"}, state: &stateDoc{}}
		m.Step(time.Now(), jobChanged{[]store.Event{{KV: store.KV{Key: c.key, Written: c.rev, Created: c.rev, Value: c.text}, Deleted: c.gone}}})
		if m.pending[reading] != c.read || m.conn.view.status.Wait != c.status || (m.conn.view.leader != nil) != (c.what == "a leader") {
			t.Errorf("%s: is read: %t, the view is %+v", c.what, m.pending[reading], m.conn.view)
		}
	}
	m := idle()
	if m.Step(time.Now(), jobChanged{}); !m.pending[reading] {
		t.Error("nothing is read when the watch begins")
	}
}

// TestNeedIsShown: a member shows how many nodes the job needs when that changes, unless etcd has lost the job.
func TestNeedIsShown(t *testing.T) {
	t.Parallel()
	m := idle()
	m.conn.job = "j"
	read := func(v view) (shown []showNeed) {
		v.rev = m.conn.view.rev + 1
		for _, a := range m.Step(time.Now(), answered{reading, &readJob{before: m.conn.view, now: &v}, nil}) {
			if s, ok := a.(showNeed); ok {
				shown = append(shown, s)
			}
		}
		return shown
	}
	none := view{config: jobConfig{configDoc: configDoc{Job: "j"}, rev: 1}}
	round := func(id, size, least int, member bool) view {
		v := none
		v.current = &currentDoc{Round: id, ID: fmt.Sprint(id)}
		if least > 0 {
			v.limits = &limitsDoc{least, 9}
		}
		if member {
			v.round = &roundDoc{ID: id, Size: size, Assignments: map[string]assignment{m.key: {}}}
		}
		return v
	}
	for i, c := range []struct {
		v    view
		want []showNeed
	}{
		{none, nil},
		{round(1, 2, 0, true), nil},
		{round(1, 2, 1, true), nil}, // as the flags say
		{round(1, 2, 2, true), []showNeed{{2}}},
		{round(1, 2, 4, true), nil}, // the round goes on
		{round(2, 3, 4, true), []showNeed{{3}}},
		{round(2, 3, 4, true), nil},
		{round(3, 3, 3, false), nil}, // a spare does not know it
		{round(4, 3, 3, true), []showNeed{{3}}},
		{round(4, 3, 0, true), []showNeed{{1}}},
		{view{}, nil}, // it is lost
		{round(4, 2, 2, true), nil},
	} {
		if got := read(c.v); !slices.Equal(got, c.want) {
			t.Errorf("read %d: %v, want %v", i, got, c.want)
		}
	}
}

// idle is the machine of a node that has done nothing yet.
func idle() *stateMachine {
	c := Config{Config: rendezvous.Config{
		RunID: "job", Rules: rendezvous.Rules{Min: 1, Max: 1, JoinTimeout: time.Hour}, Reserve: reserve,
	}}
	if err := c.complete(); err != nil {
		panic(err)
	}
	return newStateMachine(&c, "k", "secret", time.Now())
}

// TestOutageIsLookedInto: a request that fails causes a read. No other request may follow, and what waits for etcd should not wait
// until the job is read anyway.
func TestOutageIsLookedInto(t *testing.T) {
	t.Parallel()
	m := idle()
	m.Step(time.Now(), answered{reporting, &recordReport{round: 1}, context.DeadlineExceeded})
	if !m.conn.isAway() || !m.pending[reading] {
		t.Errorf("an outage since %v; is read: %t", m.conn.outage, m.pending[reading])
	}
}

// TestDecisionInDoubt: a leader whose decision etcd has refused, though nothing seems to have changed, reads all of the job before it decides
// again. An etcd that has gone back, and counted on past what this node has read, has other nodes than the leader takes it to have.
func TestDecisionInDoubt(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		m := idle()
		v := &view{rev: 10, whole: true, leader: &leaderDoc{Key: "k"}, leaderLease: 7, currentRev: 3}
		m.conn.lease, m.conn.view, m.leader.leading, m.conn.renewAt = 7, v, true, time.Now().Add(time.Hour)
		now := *v
		if now.rev = 11; !refused {
			now.currentRev = 11
		}
		m.leader.attempts.pending, m.leader.written = v, true
		m.pending[reading], m.pending[deciding] = true, true
		actions := m.Step(time.Now(), answered{reading, &readJob{before: v, whole: true, now: &now}, nil})
		if m.leader.written != refused {
			t.Errorf("refused %t: waits for another read %t", refused, m.leader.written)
		}
		m.conn.readAt, m.conn.dirty, m.pending[reading] = time.Time{}, true, false
		var read *readJob
		for _, a := range append(actions, m.Step(time.Now(), ticked{})...) {
			if asked, ok := a.(asked); ok && asked.kind == reading && read == nil {
				read = asked.request.(*readJob)
			}
		}
		if read == nil || read.anew != refused {
			t.Errorf("refused %t: reads %+v", refused, read)
		}
	}
}

// TestNewsFirst: when it is time to decide, a leader waits for the answer if it is reading news.
func TestNewsFirst(t *testing.T) {
	t.Parallel()
	for _, isReading := range []bool{false, true} {
		m := idle()
		self := nodeDoc{Node: rendezvous.Node{ID: "k", Host: "h", Nproc: 1, NodeRank: -1}, Port: 1, Try: 1, Joining: true}
		v := &view{rev: 10, whole: true, leader: &leaderDoc{Key: "k"}, leaderLease: 7, nodeTable: nodeTable{nodes: map[string]knownNode{"k": {doc: &self}}}}
		m.conn.lease, m.conn.view, m.leader.leading, m.conn.renewAt, m.conn.readAt = 7, v, true, time.Now().Add(time.Hour), time.Now()
		m.leader.decided, m.leader.decideAt, m.leader.retainAt = v, time.Now(), time.Now().Add(time.Hour)
		m.pending[reading] = isReading
		m.Step(time.Now(), ticked{})
		if m.pending[deciding] == isReading {
			t.Errorf("reading: %t, decides: %t", isReading, m.pending[deciding])
		}
		if wake := time.Until(m.wake()); isReading && wake < time.Second {
			t.Errorf("it looks again in %v", wake)
		}
	}
}

// TestWaitBetweenAttempts: a leader that waits on the way to its next decision has not given up the one before, which etcd has refused.
func TestWaitBetweenAttempts(t *testing.T) {
	t.Parallel()
	for stage, want := range map[rendezvous.Awaited]int{rendezvous.News: 0, rendezvous.Enough: 2, rendezvous.LastCall: 2} {
		m := idle()
		m.leader.attempts.failed = 2
		m.leader.act(rendezvous.Decision{Wait: "for more", Stage: rendezvous.Stage{Round: 1, For: stage}})
		if got := m.leader.attempts.failed; got != want {
			t.Errorf("after a wait for %d, %d attempts have failed in a row, want %d", stage, got, want)
		}
	}
}

// TestBriefOutage: an outage is logged only if it still lasts when its cause is known.
func TestBriefOutage(t *testing.T) {
	t.Parallel()
	said := func(m *stateMachine) (lines []string) {
		for _, a := range m.Step(time.Now(), answered{explaining, &explainOutage{context.DeadlineExceeded}, nil}) {
			if line, ok := a.(logLine); ok {
				lines = append(lines, line.text)
			}
		}
		return lines
	}
	m := idle()
	if lines := said(m); len(lines) > 0 {
		t.Errorf("of one that is over it says %q", lines)
	}
	m.conn.outage = time.Now()
	if lines := said(m); len(lines) != 1 || !strings.Contains(lines[0], "etcd cannot be used") || !m.conn.warnedOf.Equal(m.conn.outage) {
		t.Errorf("of one that lasts it says %q", lines)
	}
}

// A lateTask posts once it may.
type lateTask struct {
	may  chan struct{}
	news event
}

func (t lateTask) run(_ context.Context, _ *driver, post func(event)) {
	<-t.may
	post(t.news)
}

// counted is an event that counts how often it happens.
type counted struct{ times *int }

func (e counted) apply(*stateMachine) { *e.times++ }

// TestStoppedTaskIsNotHeard: what a task has found is no news once it has been stopped, or another one has taken its place.
func TestStoppedTaskIsNotHeard(t *testing.T) {
	t.Parallel()
	follower := lateTask{make(chan struct{}), begun{}}
	for name, c := range map[string]struct {
		before action // is done before the task posts
		want   int
	}{
		"it runs":      {stop{"another"}, 1},
		"it stops":     {stop{"task"}, 0},
		"its follower": {start{"task", follower}, 0},
	} {
		d := &driver{config: &Config{}, machine: idle(), turns: make(chan func()), done: make(chan struct{}), tasks: make(map[string]context.CancelFunc)}
		d.machine.closed, d.machine.pending[leasing] = rendezvous.ErrClosed, true // it asks for nothing
		d.ctx = t.Context()
		times := 0
		task := lateTask{make(chan struct{}), counted{&times}}
		start{"task", task}.perform(d)
		c.before.perform(d)
		close(task.may)
		news, end := <-d.turns, <-d.turns // the task may have ended by the time that its news is heard
		news()
		end()
		if times != c.want {
			t.Errorf("%s: it is heard %d times, want %d", name, times, c.want)
		}
		close(d.done)
	}
	close(follower.may)
}

// TestNewsIsReadFirst: a leader that knows of news decides again when it has read that, and not when something else happens before. A member
// may be gone, or another failure be reported.
func TestNewsIsReadFirst(t *testing.T) {
	t.Parallel()
	for _, e := range []event{agentConnected{"other", 1}, answered{publishing, &publishStatus{}, nil}} {
		for _, unread := range []bool{false, true} {
			m := idle()
			v := &view{rev: 10, whole: true, leader: &leaderDoc{Key: "k"}, leaderLease: 7}
			m.conn.lease, m.conn.view, m.conn.renewAt, m.conn.readAt = 7, v, time.Now().Add(time.Hour), time.Now()
			m.leader.leading, m.leader.decided, m.leader.stage = true, v, rendezvous.Stage{For: rendezvous.Cause}
			m.pending[reading] = unread
			decides := slices.ContainsFunc(m.Step(time.Now(), e), func(a action) bool { _, is := a.(logDecision); return is })
			if decides == unread {
				t.Errorf("%T: news is to be read: %t; it decides: %t", e, unread, decides)
			}
		}
	}
}
