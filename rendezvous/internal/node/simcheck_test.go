package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A simRecord is all that has been written, and seen, of the jobs of a simWorld. Whatever is written is checked at
// once.
type simRecord struct {
	config   *Config
	rounds   map[string]*roundRecord       // by currentDoc.ID
	tokens   map[string]*roundRecord       // by roundDoc.Token
	newest   map[string]*roundRecord       // of each job, by configDoc.Job
	outcomes map[string]rendezvous.Outcome // of each job, the last one
	all      []rendezvous.Outcome
	lossy    bool   // etcd has lost some of its history
	ranked   bool   // nodes ask for ranks
	job      string // the last one that has begun
	current  *roundRecord
	joined   map[string]time.Time // when nodes last became members of a job that had a round already, by key
	lost     map[string]time.Time // when the last rounds ended since nodes had not stayed, by their hosts
}

type roundRecord struct {
	job     string
	number  int
	docs    map[string]string // by key
	formed  *rendezvous.Formed
	over    *rendezvous.Ending
	ended   time.Time      // when it was over first
	changed bool           // over was another one before
	failed  bool           // a worker has, and not because a node was gone
	entered map[int]string // keys of those who have entered, by rank
}

func newSimRecord(c *Config) *simRecord {
	return &simRecord{
		config: c, rounds: make(map[string]*roundRecord), tokens: make(map[string]*roundRecord),
		newest: make(map[string]*roundRecord), outcomes: make(map[string]rendezvous.Outcome),
		joined: make(map[string]time.Time), lost: make(map[string]time.Time),
	}
}

// check checks what one transaction has written.
func (w *simWorld) check(events []store.Event) {
	k := keysOf(DefaultPrefix, "job")
	for _, e := range events {
		if e.Deleted {
			// The last node has left, or no leader has renewed the job's lease. Who was cut off may come back and not know.
			w.record.lossy = w.record.lossy || e.Key == k.config() && w.store.Get(k.state()).Written == 0
			continue
		}
		switch key := e.Key; {
		case key == k.config():
			// The same goes for another job of the name, begun when no node of the last one was there.
			_, ended := w.record.outcomes[w.record.job]
			w.record.lossy = w.record.lossy || w.record.job != "" && !ended
			w.record.job = w.job(k)
		case key == k.current():
			w.checkCurrent(k, e.KV)
		case key == k.state():
			w.checkState(e.KV)
		case key == k.lost():
			w.checkLost(e.KV)
		}
	}
}

func decoded[T any](w *simWorld, kv store.KV) T {
	doc, err := decode[T](kv)
	if err != nil {
		w.fail("%v", err)
	}
	return doc
}

// job is the one that etcd has; empty: none.
func (w *simWorld) job(k keys) string {
	kv := w.store.Get(k.config())
	if kv.Written == 0 {
		return ""
	}
	return decoded[configDoc](w, kv).Job
}

func (w *simWorld) checkCurrent(k keys, kv store.KV) {
	doc := decoded[currentDoc](w, kv)
	r := w.record.rounds[doc.ID]
	if r == nil {
		r = w.checkFormed(k, doc)
		w.record.rounds[doc.ID] = r
		w.record.newest[r.job] = r
	}
	w.record.current = r
	if w.failed != nil || doc.Over == nil {
		if r.over != nil {
			w.fail("round %d was over, and runs again", doc.Round)
		}
		return
	}
	restarts := r.formed.Restarts
	switch over := doc.Over; {
	case r.over != nil && r.over.Restarts == over.Restarts && r.over.Why == over.Why:
	case r.over != nil && !w.record.lossy && (r.changed || r.over.Restarts == restarts): // only a charge may turn out to be a mistake, once
		w.fail("round %d was over since %q, and is since %q", doc.Round, r.over.Why, over.Why)
	case over.Restarts != restarts && over.Restarts != restarts+1 || over.Restarts > w.record.config.MaxRestarts:
		w.fail("round %d has used %d restarts of %d, and ends with %d", doc.Round, restarts, w.record.config.MaxRestarts, over.Restarts)
	case over.Restarts > restarts && !w.isReported(k, doc.Round) && (!w.record.lossy || !r.failed):
		w.fail("round %d costs a restart, and nobody has reported a failure: %s", doc.Round, over.Why)
	case over.Restarts > restarts && !strings.Contains(over.Why, fmt.Sprintf("; restart %d of %d", over.Restarts, w.record.config.MaxRestarts)):
		w.fail("round %d costs a restart: %s", doc.Round, over.Why)
	}
	if r.over == nil {
		r.ended = w.now
	}
	if r.over == nil || r.over.Why != doc.Over.Why {
		if !w.record.lossy {
			w.checkRecord(k, r, doc.Over)
		}
		r.changed = r.over != nil
		r.over = doc.Over
		w.say("round %d is over, restarts %d: %s", doc.Round, doc.Over.Restarts, doc.Over.Why)
	}
}

// checkFormed checks a round when it is written first.
func (w *simWorld) checkFormed(k keys, doc currentDoc) *roundRecord {
	job := w.job(k)
	r := &roundRecord{job: job, number: doc.Round, docs: make(map[string]string), entered: make(map[int]string), formed: &rendezvous.Formed{ID: doc.Round}}
	before := w.record.newest[job]
	var docs []roundDoc
	for _, kv := range w.store.Lookup(store.Below(k.roundOf(doc.Round))) {
		r.docs[kv.Key] = kv.Value
		docs = append(docs, decoded[roundDoc](w, kv))
	}
	var err error
	if r.formed, err = formed(docs); err != nil {
		w.fail("round %d: %v", doc.Round, err)
		r.formed = &rendezvous.Formed{ID: doc.Round}
		return r
	}
	w.record.tokens[docs[0].Token] = r
	switch f := r.formed; {
	case before == nil && (f.ID != 1 || f.Restarts != 0):
		w.fail("the first round of job %s is %d, with %d restarts", job, f.ID, f.Restarts)
	case before != nil && !w.record.lossy && f.ID != before.number+1:
		w.fail("round %d follows round %d", f.ID, before.number)
	case before != nil && !w.record.lossy && before.over == nil:
		w.fail("round %d forms, and round %d runs", f.ID, before.number)
	case before != nil && !w.record.lossy && f.Restarts != before.over.Restarts:
		w.fail("round %d begins with %d restarts, and the one before ended with %d", f.ID, f.Restarts, before.over.Restarts)
	case before != nil && !w.record.lossy && f.Restarts > before.formed.Restarts && !before.failed:
		w.fail("round %d costs a restart because nodes were gone: %s", before.number, f.Why)
	case len(f.Members) < w.record.config.Min || len(f.Members) > w.record.config.Max:
		w.fail("round %d has %d nodes, want %d to %d", f.ID, len(f.Members), w.record.config.Min, w.record.config.Max)
	case w.store.Get(k.state()).Written > 0:
		w.fail("round %d forms in a job that is closed", f.ID)
	}
	w.checkMembers(r, docs)
	if before != nil && !w.record.lossy {
		w.checkGone(before, r, docs)
		w.checkNewcomers(before, r)
	}
	w.checkReach(k, r)
	w.say("round %d forms of %d nodes, restarts %d: %s", r.number, len(r.formed.Members), r.formed.Restarts,
		rendezvous.Because(r.formed.Cause, r.formed.Why))
	return r
}

// checkMembers: all ranks are there, and nobody who gets one still has workers of an earlier round.
func (w *simWorld) checkMembers(r *roundRecord, docs []roundDoc) {
	var nodes []rendezvous.Node
	for _, m := range r.formed.Members {
		a := w.agentOf(m.Key)
		if a == nil {
			w.fail("round %d has a member %s that nobody knows", r.number, m.Key)
			return
		}
		if a.running != nil && !w.record.lossy { // what an etcd knows that has gone back may be of an earlier Join, which gets no round
			w.fail("round %d has %s as a member, which has workers of round %d", r.number, a.name, a.running.ID)
		}
		nodes = append(nodes, a.node)
	}
	places := rendezvous.Assign(nodes)
	for _, d := range docs {
		for key, is := range d.Assignments {
			if want := places[is.Rank]; r.formed.Members[is.Rank].Key != key || is.Place != want {
				w.fail("round %d: %s has the place %+v, want %+v", r.number, key, is.Place, want)
			}
		}
	}
}

// checkRecord: the host of a newcomer that ends a round within a minute, since it has gone, is put on record.
func (w *simWorld) checkRecord(k keys, r *roundRecord, over *rendezvous.Ending) {
	for _, m := range r.formed.Members {
		joined, is := w.record.joined[m.Key]
		is = is && w.store.Get(k.node(m.Key)).Written == 0 // another node of its host may have the same name
		gone := over.Why == m.Node.Name()+" is lost" || strings.HasPrefix(over.Why, m.Node.Name()+" has left")
		if is && gone && w.now.Sub(joined) < time.Minute && !slices.Contains(over.Lost, m.Node.Host) {
			w.fail("round %d is over since %q, and %s joined %v before; on record are %q",
				r.number, over.Why, m.Node.Host, w.now.Sub(joined), over.Lost)
		}
	}
	for _, host := range over.Lost {
		w.record.lost[host] = r.ended
	}
}

// checkNewcomers: no host gets in within half a minute after it was put on record.
func (w *simWorld) checkNewcomers(before, r *roundRecord) {
	for _, m := range r.formed.Members {
		if slices.ContainsFunc(before.formed.Members, func(c rendezvous.Candidate) bool { return c.Key == m.Key }) {
			continue
		}
		w.record.joined[m.Key] = w.now
		const least = 30*time.Second - callTimeout // which it may take to write that the round was over
		if lost, is := w.record.lost[m.Node.Host]; is && w.now.Sub(lost) < least {
			w.fail("round %d has %s, which did not stay in a round that ended %v before", r.number, m.Node.Host, w.now.Sub(lost))
		}
	}
}

// checkReach: no member of a round says that it cannot reach another one.
func (w *simWorld) checkReach(k keys, r *roundRecord) {
	for _, m := range r.formed.Members {
		kv := w.store.Get(k.node(m.Key))
		if kv.Written == 0 {
			continue
		}
		for _, u := range decoded[nodeDoc](w, kv).Unreached {
			is := func(c rendezvous.Candidate) bool { return c.Key == u.Key && c.Key != m.Key }
			if slices.ContainsFunc(r.formed.Members, is) {
				w.fail("round %d has %s, which cannot reach %s", r.number, m.Node.Host, u.Addr)
			}
		}
	}
}

// checkGone checks what a round says of the members that it no longer has: it names them and their ranks, unless they
// have succeeded.
func (w *simWorld) checkGone(before, r *roundRecord, docs []roundDoc) {
	first := 0
	for _, m := range before.formed.Members {
		named := slices.ContainsFunc(docs[0].Gone, func(g rendezvous.GoneNode) bool {
			return g.ID == m.Node.ID && g.FirstRank == first && g.Nproc == m.Node.Nproc
		})
		stays := slices.ContainsFunc(r.formed.Members, func(now rendezvous.Candidate) bool { return now.Key == m.Key })
		reported := w.succeeded[m.Key][before.number] // etcd may not know
		if named && stays || !named && !stays && !reported {
			w.fail("round %d follows round %d, and has %+v as gone; of %s: %t", r.number, before.number, docs[0].Gone, m.Node.ID, stays)
		}
		first += m.Node.Nproc
	}
}

// isReported reports whether a worker's failure in a round is on record.
func (w *simWorld) isReported(k keys, round int) bool {
	first := k.reportsOf(round)
	return slices.ContainsFunc(w.store.Lookup(store.Below(first)), func(kv store.KV) bool {
		return decoded[reportDoc](w, kv).Failure != nil
	})
}

// checkState: a job ends once, and with success only if all members of its round have reported that.
func (w *simWorld) checkState(kv store.KV) {
	doc := decoded[stateDoc](w, kv)
	before, closed := w.record.outcomes[doc.Job]
	if closed && before != doc.Outcome && !w.record.lossy {
		w.fail("job %s had ended with %+v, and ends with %+v", doc.Job, before, doc.Outcome)
	}
	w.record.outcomes[doc.Job] = doc.Outcome
	w.record.all = append(w.record.all, doc.Outcome)
	w.say("the job ends with %+v", doc.Outcome)
	r := w.record.current
	if f := doc.Outcome.Failure; f != nil && r != nil && !r.failed && !w.record.lossy && !w.leavesUntold(r) {
		w.fail("the job ends with a failure because nodes were gone: %s", f)
	}
	if closed || !doc.Outcome.Success() {
		return
	}
	if r == nil || r.over != nil && !w.record.lossy {
		w.fail("the job ends with success, and no round runs")
		return
	}
	for _, m := range r.formed.Members {
		if !w.succeeded[m.Key][r.number] {
			w.fail("the job ends with success, and %s has not reported it", m.Key)
		}
	}
}

// leavesUntold reports whether an agent of a round has ended its workers to leave, and etcd does not know: the agent does not reach it, and
// keeps its connections until it has tried. The others do not wait for so long before a failure ends the job.
func (w *simWorld) leavesUntold(r *roundRecord) bool {
	k := keysOf(DefaultPrefix, "job")
	return slices.ContainsFunc(r.formed.Members, func(m rendezvous.Candidate) bool {
		a, kv := w.agentOf(m.Key), w.store.Get(k.node(m.Key))
		return a != nil && a.leaving && !a.gone && kv.Written > 0 && !decoded[nodeDoc](w, kv).Leaving
	})
}

// checkLost: only of a job that etcd may have lost one says so.
func (w *simWorld) checkLost(kv store.KV) {
	doc := decoded[lostDoc](w, kv)
	w.record.all = append(w.record.all, doc.Outcome)
	if !w.record.lossy || doc.Outcome.Code != rendezvous.CodeUnformed {
		w.fail("the lost job %s ends with %+v", doc.Job, doc.Outcome)
	}
	w.say("the lost job ends with %+v", doc.Outcome)
}

// checkRound checks a round as an agent sees it.
func (w *simWorld) checkRound(a *simAgent, r *simRound) {
	record := w.record.tokens[r.Token]
	switch {
	case record == nil:
		w.fail("%s enters round %d, which was never written", a.name, r.ID)
		return
	case a.running != nil || a.entered != nil:
		w.fail("%s enters round %d, and is in another one", a.name, r.ID)
	case r.ID != record.number || r.Size != len(record.formed.Members) || r.Restarts != record.formed.Restarts || r.Because() != rendezvous.Because(record.formed.Cause, record.formed.Why):
		w.fail("%s enters round %d of %d nodes with %d restarts, and it was written as %+v", a.name, r.ID, r.Size, r.Restarts, record.formed)
	case r.Self >= r.Size || record.formed.Members[r.Self].Key != a.executor.key:
		w.fail("%s has rank %d in round %d", a.name, r.Self, r.ID)
	case record.entered[r.Self] != "":
		w.fail("%s enters round %d twice", a.name, r.ID)
	case r.Node != a.node:
		w.fail("%s enters round %d as %+v", a.name, r.ID, r.Node)
	case r.Master.Port == 0 || r.Master.Addr == "":
		w.fail("%s enters round %d with the master %v", a.name, r.ID, r.Master)
	}
	record.entered[r.Self] = a.executor.key
}

// checkEnd: all agents have ended for a good reason, nobody waits, and etcd keeps nothing but how the job has ended.
func (w *simWorld) checkEnd() {
	for _, a := range w.agents {
		if !a.begun {
			continue
		}
		switch {
		case !a.gone:
			w.fail("%s has not ended: running %t, in a round %t, Joins that wait: %d, the last reason %q; etcd has\n%s",
				a.name, a.running != nil, a.entered != nil, len(a.joins), a.waits, w.contents())
			return
		case a.left && len(a.joins)+len(a.reports) > 0:
			w.fail("%s has left, and did not answer the Joins %v, and the Reports %v", a.name, a.joins, a.reports)
			return
		}
		if err := w.wrongEnd(a); err != nil {
			w.fail("%s has ended: %v", a.name, err)
			return
		}
	}
	// The leases of agents that were killed, and of the job, run out.
	w.now = w.now.Add(w.record.config.retention() + w.record.config.failureTimeout())
	w.store.Expire()
	k := keysOf(DefaultPrefix, "job")
	left := w.store.Lookup(store.Range{End: "\xff"})
	if left = slices.DeleteFunc(left, func(kv store.KV) bool { return kv.Key == k.state() }); len(left) > 0 {
		w.fail("etcd keeps of a job without nodes\n%s", w.contents())
	}
}

// wrongEnd returns why the agent has ended, unless that is as it should be.
func (w *simWorld) wrongEnd(a *simAgent) error {
	var closed *rendezvous.ClosedError
	var misuse *rendezvous.MisuseError
	var ended *EndedError
	var taken *takenError
	var unreachable *UnreachableError
	switch {
	case a.over == nil, errors.Is(a.over, rendezvous.ErrClosed) && !errors.As(a.over, &closed): // it was killed, or told to leave
	case a.leaveReason != nil:
	case errors.As(a.over, &closed):
		lost := w.record.lossy && (strings.HasPrefix(closed.Outcome.Reason, "etcd has lost this job") ||
			closed.Outcome.Success() && len(w.succeeded[a.executor.key]) > 0)
		if !lost && !slices.ContainsFunc(w.record.all, func(o rendezvous.Outcome) bool { return sameOutcome(o, closed.Outcome) }) {
			return fmt.Errorf("%w, and etcd was never told", a.over)
		}
	case errors.As(a.over, &misuse) && errors.As(a.over, &ended):
	case errors.As(a.over, &misuse) && errors.As(a.over, &taken) && w.record.ranked:
	case errors.As(a.over, &unreachable) && (w.vanished || w.longest >= w.record.config.JoinTimeout-5*time.Second):
	case errors.As(a.over, &unreachable) && a.deadRank0 && w.longest > 0: // its lease has lasted as long as the outage, and then for its own time
	case errors.As(a.over, &unreachable) && a.deadRank0 && w.record.config.JoinTimeout < 2*w.record.config.Lease+repeated: // and so after a repeated renewal
	case strings.HasPrefix(a.over.Error(), "etcd cannot be used") && a.away >= w.record.config.JoinTimeout:
	default:
		return a.over
	}
	return nil
}

func sameOutcome(a, b rendezvous.Outcome) bool {
	fa, fb := a.Failure, b.Failure
	a.Failure, b.Failure = nil, nil
	return a == b && (fa == nil) == (fb == nil) && (fa == nil || fa.Node == fb.Node && fa.String() == fb.String())
}
