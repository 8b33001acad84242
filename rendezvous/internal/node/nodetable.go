package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A nodeTable is what a leader knows of the nodes: who is here, and how their parts of the current round have ended. It is read
// once; after that only what has changed.
type nodeTable struct {
	nodes   map[string]knownNode // that are here, by key
	reports []rendezvous.Report  // the first one first
	bad     map[string]error     // why nodes are left out, and reports cannot be read, by the store's key
	formed  *rendezvous.Formed   // the current round; nil: none, or the job is closed
}

// A knownNode is a node as it was read.
type knownNode struct {
	rev, since int64    // the revisions at which it was written, and was written first
	doc        *nodeDoc // nil: it cannot be read
}

// readChanges is how to read what has changed since v.
func (v *view) readChanges(k keys) []store.Query {
	since := int64(0)
	if v.whole {
		since = v.rev + 1
	}
	return []store.Query{
		{Range: store.Below(k.nodes()), Since: since},
		{Range: store.Below(k.reports()), Since: since},
		{Range: store.Below(k.rounds()), Since: since}, // of which there is one
	}
}

// applyChanges brings the table before up to date. It reports whether that is all: of nodes that are gone there is no
// news, but then fewer are here than are known. The store may have lost its data since, and have another job at a later
// revision. Then its settings have been written anew, or what has changed does not go with what was there before.
func (v *view) applyChanges(k keys, before *view, found []store.Found) (all bool, err error) {
	nodes, reports, rounds := found[0], found[1].KVs, found[2].KVs
	v.nodeTable = nodeTable{nodes: make(map[string]knownNode), bad: make(map[string]error)}
	maps.Copy(v.nodes, before.nodes)
	maps.Copy(v.bad, before.bad)
	for _, kv := range nodes.KVs {
		v.readNode(k, kv)
	}
	if v.rev < before.rev || before.whole && !v.config.same(before.config) || nodes.Count != len(v.nodes) {
		return false, nil
	}
	if err := v.readFormed(k, before, rounds); err != nil {
		return !before.whole, err
	}
	if v.sameRound(before) {
		v.reports = slices.Clone(before.reports)
	} else {
		maps.DeleteFunc(v.bad, func(key string, _ error) bool { return strings.HasPrefix(key, k.reports()) })
	}
	slices.SortStableFunc(reports, func(a, b store.KV) int { return cmp.Compare(a.Written, b.Written) })
	for _, kv := range reports {
		v.readReport(k, kv)
	}
	return true, nil
}

// readFormed finds the current round, which may be in the view before, or else is in kvs.
func (v *view) readFormed(k keys, before *view, kvs []store.KV) (err error) {
	if v.current == nil || v.state != nil {
		return nil
	}
	if v.formed = before.formed; v.formed != nil && v.sameRound(before) {
		return nil
	}
	docs := make([]roundDoc, len(kvs))
	for i, kv := range kvs {
		if docs[i], err = decode[roundDoc](kv); err != nil {
			return err
		}
	}
	if v.formed, err = formed(docs); err != nil {
		return &DocumentError{k.roundOf(v.current.Round), err}
	}
	return nil
}

func (v *view) readNode(k keys, kv store.KV) {
	key := strings.TrimPrefix(kv.Key, k.nodes())
	n := knownNode{rev: kv.Written, since: kv.Created}
	doc, err := decode[nodeDoc](kv)
	if v.judge(kv, err) {
		n.doc = &doc
	}
	v.nodes[key] = n
}

// candidates are the nodes that can be read, in the order of their keys, and what they say that they cannot reach.
func (t *nodeTable) candidates() (all []rendezvous.Candidate, unreachable []rendezvous.Unreachable) {
	for _, key := range slices.Sorted(maps.Keys(t.nodes)) {
		n := t.nodes[key]
		d := n.doc
		if d == nil {
			continue
		}
		all = append(all, rendezvous.Candidate{
			Key: key, Since: n.since, Node: d.Node, Port: d.Port, AgentPort: d.AgentPort, Try: d.Try, Joining: d.Joining, Leaving: d.Leaving,
		})
		for _, u := range d.Unreached {
			unreachable = append(unreachable, rendezvous.Unreachable{From: key, To: u.Key, Addr: u.Addr})
		}
	}
	return all, unreachable
}

// membersHere is how many members of the current round are here.
func (t *nodeTable) membersHere() (n int) {
	for _, m := range t.formed.Members {
		if t.nodes[m.Key].rev > 0 {
			n++
		}
	}
	return n
}

// readReport takes one on the current round. They are read in the order of revision, which is that in which they were made;
// a node that leaves may replace its own.
func (v *view) readReport(k keys, kv store.KV) {
	if v.current == nil {
		return
	}
	key, ours := strings.CutPrefix(kv.Key, k.reportsOf(v.current.Round))
	if !ours {
		return
	}
	v.reports = slices.DeleteFunc(v.reports, func(r rendezvous.Report) bool { return r.Key == key })
	doc, err := decode[reportDoc](kv)
	if !v.judge(kv, err) {
		doc = reportDoc{Failure: v.unreadable(key, err)}
	}
	v.reports = append(v.reports, rendezvous.Report{Key: key, Failure: doc.Failure, Left: doc.Left, Restart: doc.Restart})
}

// unreadable is a failure of the first worker of a node whose report cannot be read: the node has nothing more to say, and would wait
// for ever.
func (v *view) unreadable(key string, err error) *rendezvous.Failure {
	f := &rendezvous.Failure{Death: death.Death{ExitCode: 1, Cause: death.Unknown, Why: "the report of its node cannot be read"}, Text: fmt.Sprintf("the report of its node cannot be read: %.1000s", err)}
	if v.formed == nil {
		return f
	}
	for _, m := range v.formed.Members {
		if m.Key == key {
			f.Node, f.Host = m.Node.ID, m.Node.Host
			break
		}
		f.Rank += m.Node.Nproc
	}
	return f
}

// judge reports whether kv is good.
func (v *view) judge(kv store.KV, err error) bool {
	delete(v.bad, kv.Key)
	if err != nil {
		v.bad[kv.Key] = err
	}
	return err == nil
}

// newlyBad is what there is to complain of that was not in before.
func (t *nodeTable) newlyBad(before *nodeTable) (news []error) {
	for key, err := range t.bad {
		if old := before.bad[key]; old == nil || old.Error() != err.Error() {
			news = append(news, err)
		}
	}
	return news
}
