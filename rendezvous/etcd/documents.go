package etcd

import (
	"encoding/json"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/gorun/gorun/rendezvous"
)

const (
	docVersion = 1
	docLimit   = 1 << 20 // bytes; etcd itself refuses requests of more than 1.5 MiB
)

// A document is the value of a key.
type document[T any] struct {
	Version int `json:"version"`
	Is      T   `json:"is"`
}

// A DocumentError says that a key's value is nothing this version of gorun can go by.
type DocumentError struct {
	Key string
	Err error
}

// Error is one line.
func (e *DocumentError) Error() string { return fmt.Sprintf("etcd key %s: %v", e.Key, e.Err) }

// Unwrap returns Err.
func (e *DocumentError) Unwrap() error { return e.Err }

func encode[T any](key string, is T) (string, error) {
	text, err := json.Marshal(document[T]{Version: docVersion, Is: is})
	if err == nil && len(text) > docLimit {
		err = tooLarge(text)
	}
	if err != nil {
		return "", &DocumentError{key, err}
	}
	return string(text), nil
}

func tooLarge(text []byte) error {
	return fmt.Errorf("a document of %d bytes: want at most %d", len(text), docLimit)
}

// decode fails with a *DocumentError. A checker's check is part of it.
func decode[T any](kv *mvccpb.KeyValue) (T, error) {
	var doc document[T]
	err := func() error {
		if len(kv.Value) > docLimit {
			return tooLarge(kv.Value)
		}
		// What does not fit may still have a version.
		switch err := json.Unmarshal(kv.Value, &doc); {
		case doc.Version != 0 && doc.Version != docVersion:
			return fmt.Errorf("version %d, and this gorun knows version %d: all nodes need the same gorun", doc.Version, docVersion)
		case err != nil:
			return fmt.Errorf("not a document of gorun's: %w", err)
		}
		if c, ok := any(&doc.Is).(checker); ok {
			return c.check()
		}
		return nil
	}()
	if err != nil {
		var none T
		return none, &DocumentError{string(kv.Key), err}
	}
	return doc.Is, nil
}

type checker interface{ check() error }

// configDoc is what job/config says.
type configDoc struct {
	Host     string              `json:"host"` // of the node that has written it
	Settings rendezvous.Settings `json:"settings"`
}

// leaderDoc is what job/leader says.
type leaderDoc struct {
	Key  string `json:"key"`
	Host string `json:"host"`
}

// currentDoc is what job/current says.
type currentDoc struct {
	Round int     `json:"round"`
	Over  *ending `json:"over,omitempty"` // nil: it is running
}

type ending struct {
	Why      string `json:"why"`
	Restarts int    `json:"restarts"`
}

func (d *currentDoc) check() error {
	if d.Round < 1 {
		return fmt.Errorf("round %d", d.Round)
	}
	return nil
}

// stateDoc is what job/state says.
type stateDoc struct {
	Outcome rendezvous.Outcome `json:"outcome"`
}

// statusDoc is what job/status says.
type statusDoc struct {
	Wait string `json:"wait"`
}

// nodeDoc is what nodes/<key> says.
type nodeDoc struct {
	Node    node `json:"node"`
	Port    int  `json:"port"`    // reserved for a master
	Joining bool `json:"joining"` // a Join waits
	Try     int  `json:"try"`     // number of the last Join
}

type node struct {
	ID       string `json:"id"`
	Host     string `json:"host"`
	Addr     string `json:"addr,omitempty"`
	NodeRank int    `json:"node_rank"`
	Nproc    int    `json:"nproc"`
	Role     string `json:"role"`
}

func (d *nodeDoc) check() error {
	if d.Node.Host == "" || d.Node.Nproc < 1 || d.Port < 1 || d.Port > 65535 {
		return fmt.Errorf("host %q, %d workers, port %d", d.Node.Host, d.Node.Nproc, d.Port)
	}
	return nil
}

// roundDoc is what rounds/<n> says.
type roundDoc struct {
	ID       int      `json:"id"`
	Members  []member `json:"members"` // in rank order
	Token    string   `json:"token"`
	Restarts int      `json:"restarts"`
	Why      string   `json:"why,omitempty"`
}

type member struct {
	Key   string `json:"key"`
	Since int64  `json:"since"`
	nodeDoc
}

func (d *roundDoc) check() error {
	if d.ID < 1 || len(d.Members) == 0 {
		return fmt.Errorf("round %d with %d nodes", d.ID, len(d.Members))
	}
	keys := make(map[string]bool)
	for _, m := range d.Members {
		if err := m.check(); err != nil {
			return err
		}
		if keys[m.Key] {
			return fmt.Errorf("node %s is in round %d twice", m.Key, d.ID)
		}
		keys[m.Key] = true
	}
	return nil
}

// reportDoc is what reports/<n>/<key> says: success, if it is empty.
type reportDoc struct {
	Failure *rendezvous.Failure `json:"failure,omitempty"`
	Left    string              `json:"left,omitempty"`
}

// failureLimit is what rendezvous.Failure promises.
const failureLimit = 64 << 10

func checkFailure(f *rendezvous.Failure) error {
	text, err := json.Marshal(f)
	if err == nil && len(text) > failureLimit {
		err = fmt.Errorf("a failure of %d bytes: want at most %d", len(text), failureLimit)
	}
	return err
}

func (m member) candidate() rendezvous.Candidate {
	return rendezvous.Candidate{
		Key: m.Key, Since: m.Since,
		Node: rendezvous.Node(m.Node), Port: m.Port, Joining: m.Joining, Try: m.Try,
	}
}

func memberOf(c rendezvous.Candidate) member {
	return member{Key: c.Key, Since: c.Since, nodeDoc: nodeDoc{Node: node(c.Node), Port: c.Port, Joining: c.Joining, Try: c.Try}}
}

func (d *roundDoc) formed() *rendezvous.Formed {
	f := &rendezvous.Formed{ID: d.ID, Restarts: d.Restarts, Why: d.Why}
	for _, m := range d.Members {
		f.Members = append(f.Members, m.candidate())
	}
	return f
}

// rank is that of the member, or -1.
func (d *roundDoc) rank(key string) int {
	for i, m := range d.Members {
		if m.Key == key {
			return i
		}
	}
	return -1
}
