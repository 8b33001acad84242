package node

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"

	"github.com/gorun/gorun/rendezvous/internal/store"
)

// DefaultPrefix is what the keys of all jobs begin with.
const DefaultPrefix = "/gorun/v1/"

// keys are those of one job. job/ is what every agent watches; from nodes/ to rounds/ what the leader watches too.
//
//	job/config         which job this is, and what the first node has set; the others must have set the same
//	job/leader         leased: who decides
//	job/current        which round is the newest, and whether it is over
//	job/state          how the job has ended; missing: it has not
//	job/lost           how a job has ended that the store had lost
//	job/limits         how many nodes a round may have, if that has changed since the job began
//	job/refusal        why a node has got no place in the job, for people who wait for it
//	job/status         what the next round waits for, for people
//	drain              which nodes of a round are about to leave it, because somebody has asked them to
//	nodes/<key>        leased: a node that is here, and whether it waits for a round
//	ranks/<r>          leased: which node has the node rank r that it has asked for
//	reports/<n>/<key>  how a node's part of round n has ended
//	rounds/<n>/<c>     who is in round n, of those whose keys begin with c, and its secrets
//
// What is leased is deleted when its node has gone. All the rest has the lease of job/config, which the leader renews: it is deleted some
// time after the last leader has gone. Only job/state is kept for an hour.
//
// Any node writes limits and drain, if somebody asks it to, refusal, if it is refused, and lost. Only the leader writes to current, state,
// status and rounds, and only while job/leader is what it has written. Before the first round, a node with which the store ends writes state.
type keys struct{ root string }

func keysOf(prefix, runID string) keys { return keys{prefix + url.PathEscape(runID) + "/"} }

func (k keys) job() string     { return k.root + "job/" }
func (k keys) config() string  { return k.job() + "config" }
func (k keys) leader() string  { return k.job() + "leader" }
func (k keys) current() string { return k.job() + "current" }
func (k keys) state() string   { return k.job() + "state" }
func (k keys) status() string  { return k.job() + "status" }
func (k keys) limits() string  { return k.job() + "limits" }
func (k keys) refusal() string { return k.job() + "refusal" }
func (k keys) lost() string    { return k.job() + "lost" }

func (k keys) drain() string { return k.root + "drain" }

func (k keys) nodes() string          { return k.root + "nodes/" }
func (k keys) node(key string) string { return k.nodes() + key }
func (k keys) rank(r int) string      { return k.root + "ranks/" + strconv.Itoa(r) }

func (k keys) reports() string                     { return k.root + "reports/" }
func (k keys) reportsOf(round int) string          { return k.reports() + strconv.Itoa(round) + "/" }
func (k keys) report(round int, key string) string { return k.reportsOf(round) + key }

// leaders are what only a leader reads.
func (k keys) leaders() store.Range {
	return store.Range{First: k.nodes(), End: store.Below(k.rounds()).End}
}

func (k keys) rounds() string                   { return k.root + "rounds/" }
func (k keys) roundOf(round int) string         { return k.rounds() + strconv.Itoa(round) + "/" }
func (k keys) round(round int, c string) string { return k.roundOf(round) + c }

// newKey is one for a node: 72 random bits, of which the first character says 6.
func (w *writer) newKey() string { return base64.RawURLEncoding.EncodeToString(w.randomBytes(9)) }

// newToken is 256 random bits.
func (w *writer) newToken() string { return hex.EncodeToString(w.randomBytes(32)) }

func (w *writer) randomBytes(n int) []byte {
	b := make([]byte, n)
	if w.random != nil {
		w.random(b)
	} else {
		_, _ = rand.Read(b) // never fails
	}
	return b
}

// initial is what a node's key begins with, by which a round's documents go. A transaction has room for all of them.
func initial(key string) string { return key[:min(1, len(key))] }
