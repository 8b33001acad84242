package etcd

import (
	"os"
	"testing"
	"time"
)

// TestNewsFromAnEtcdThatWentBack: etcd is restored from a copy of its data. The copy has the whole job, but the agents have seen later
// revisions. A watch that waits for the revision after those would hear nothing for a long time. So the agents begin to watch anew,
// and hear at once what happens next.
func TestNewsFromAnEtcdThatWentBack(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	j := newJob(t, server.client(), 2, 2)
	j.config.Lease = 5 * time.Second
	agents := j.agents(2)
	rounds := together(t, agents)
	_, rest, left := j.split(t, agents, rounds)

	server.stop()
	kept := t.TempDir()
	if err := os.CopyFS(kept, os.DirFS(server.config.Dir)); err != nil {
		t.Fatal(err)
	}
	server.again()
	k := keysOf(DefaultPrefix, j.config.RunID)
	put := func(key string) int64 {
		t.Helper()
		answer, err := j.client.Put(t.Context(), key, `{"version":2,"is":{}}`)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Header.Revision
	}
	for range 200 {
		put("/other")
	}
	put(k.report(0, "nobody")) // the leader watches this
	last := put(k.status())    // all agents watch this
	for _, a := range agents {
		await(t, a, func(m *stateMachine) bool { return m.conn.view.rev >= last })
	}

	server.stop()
	if err := os.RemoveAll(server.config.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(server.config.Dir, os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	server.again()
	for _, a := range agents {
		a.look(func(m *stateMachine) { m.conn.dirty = true })
		await(t, a, func(m *stateMachine) bool {
			return m.conn.view.rev < last && m.member.enrolledLease == m.conn.lease && m.conn.outage.IsZero() && !m.conn.dirty
		})
	}
	begun := time.Now()
	rest[0].report(left[0], failure(rest[0], left[0].Self, 3))
	wantNewRound(t, rounds)
	ended := time.Since(begun)
	if r := together(t, agents)[0]; r.ID != 2 || r.Restarts != 1 {
		t.Errorf("the round is %s", show(r))
	}
	if took := time.Since(begun); took > recheck/2 {
		t.Errorf("the round that has failed is over after %v, and the next one begins after %v", ended, took)
	}
}
