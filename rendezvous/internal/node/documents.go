package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

const (
	docVersion = 2       // is raised when older agents would misread a document: a Failure, say
	docLimit   = 1 << 20 // bytes
)

// A document is the value of a key. Some names in JSON (door, head, seats) are older than those in Go.
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
	if err == nil {
		err = checkSize(len(text))
	}
	if err != nil {
		return "", &DocumentError{key, err}
	}
	return string(text), nil
}

// decode fails with a *DocumentError. A checker's check is part of it.
func decode[T any](kv store.KV) (T, error) {
	var doc document[T]
	err := func() error {
		if err := checkSize(len(kv.Value)); err != nil {
			return err
		}
		// What does not fit may still have a version.
		switch err := json.Unmarshal([]byte(kv.Value), &doc); {
		case doc.Version != 0 && doc.Version != docVersion:
			return fmt.Errorf("version %d, but this gorun uses version %d: all nodes need the same version of gorun", doc.Version, docVersion)
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
		return none, &DocumentError{kv.Key, err}
	}
	return doc.Is, nil
}

type checker interface{ check() error }

func checkSize(n int) error {
	if n > docLimit {
		return fmt.Errorf("a document of %d bytes: want at most %d", n, docLimit)
	}
	return nil
}

// configDoc is what job/config says.
type configDoc struct {
	Job      string              `json:"job"`  // tells it from others of its name, which have ended
	Host     string              `json:"host"` // of the node that has written it
	Settings rendezvous.Settings `json:"settings"`
	Secret   string              `json:"secret"` // by which the agents know each other
}

// rankDoc is what ranks/<r> says.
type rankDoc struct {
	Key  string `json:"key"` // of the node that has it
	ID   string `json:"id"`
	Host string `json:"host"`
}

func (d *rankDoc) check() error { return checkTexts(d.Key, d.ID, d.Host) }

// leaderDoc is what job/leader says.
type leaderDoc struct {
	Key   string `json:"key"`
	Host  string `json:"host"`
	Agent string `json:"door"` // host:port at which its agent answers the others
}

func (d *leaderDoc) check() error { return checkTexts(d.Key, d.Host, d.Agent) }

// currentDoc is what job/current says.
type currentDoc struct {
	Round int                `json:"round"`
	ID    string             `json:"id"`             // tells the round from any other of that number
	Over  *rendezvous.Ending `json:"over,omitempty"` // nil: it is running
}

func (d *currentDoc) check() error {
	if d.Round < 1 {
		return fmt.Errorf("round %d", d.Round)
	}
	if d.Over != nil {
		return checkGone(d.Over.Gone)
	}
	return nil
}

func checkGone(nodes []rendezvous.GoneNode) error {
	for _, g := range nodes {
		if err := errors.Join(g.Check(), checkTexts(g.ID, g.Host, g.Why)); err != nil {
			return err
		}
	}
	return nil
}

// stateDoc is what job/state says.
type stateDoc struct {
	Job     string             `json:"job"` // configDoc.Job
	Outcome rendezvous.Outcome `json:"outcome"`
	At      time.Time          `json:"at"` // by the clock of the node that led
}

// lostDoc is what job/lost says.
type lostDoc struct {
	Job     string             `json:"job"` // configDoc.Job
	Outcome rendezvous.Outcome `json:"outcome"`
}

// statusDoc is what job/status says.
type statusDoc struct {
	Wait string `json:"wait"`
}

// limitsDoc is what job/limits says.
type limitsDoc struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

func (d *limitsDoc) check() error {
	if d.Min < 1 || d.Max < d.Min || d.Max > nodesLimit {
		return fmt.Errorf("%d to %d nodes: want at least 1, a minimum that does not exceed the maximum, and at most %d", d.Min, d.Max, nodesLimit)
	}
	return nil
}

// drainDoc is what drain says.
type drainDoc struct {
	Round int   `json:"round"`
	Nodes []int `json:"nodes"` // by node rank
}

func (d *drainDoc) check() error {
	if d.Round < 1 || len(d.Nodes) > nodesLimit {
		return fmt.Errorf("%d nodes leave round %d", len(d.Nodes), d.Round)
	}
	return nil
}

// nodeDoc is what nodes/<key> says.
type nodeDoc struct {
	Node      rendezvous.Node `json:"node"`
	Port      int             `json:"port"`              // for a master
	AgentPort int             `json:"door"`              // the agent answers the others there
	Try       int             `json:"try"`               // number of the last Join
	Joining   bool            `json:"joining"`           // that waits, or has got its round
	Leaving   bool            `json:"leaving,omitempty"` // it ends its workers for good, and will not join again

	Unreached []unreachedDoc `json:"unreached,omitempty"` // nodes that this one cannot reach
}

type unreachedDoc struct {
	Key  string `json:"key"`
	Addr string `json:"addr"` // at which it was called
}

func (d *nodeDoc) check() error {
	if d.Node.Host == "" || d.Port < 1 || d.Port > 65535 {
		return fmt.Errorf("host %q, port %d", d.Node.Host, d.Port)
	}
	if len(d.Unreached) > reachLimit {
		return fmt.Errorf("%d nodes that it cannot reach: want at most %d", len(d.Unreached), reachLimit)
	}
	for _, u := range d.Unreached {
		if err := checkTexts(u.Key, u.Addr); err != nil {
			return err
		}
	}
	return d.Node.Check()
}

// reportDoc is what reports/<n>/<key> says: success, if it is empty.
type reportDoc struct {
	Failure *rendezvous.Failure `json:"failure,omitempty"`
	Left    *rendezvous.Outcome `json:"left,omitempty"`
	Restart string              `json:"restart,omitempty"` // why somebody wants another round; empty: nobody does
}

func (d *reportDoc) check() error { return errors.Join(checkFailure(d.Failure), checkTexts(d.Restart)) }

// textLimit bounds the key, the name, or the address of a node, in bytes. The name of a host has at most 255.
const textLimit = 300

// checkTexts checks keys, names and addresses of nodes.
func checkTexts(texts ...string) error {
	for _, text := range texts {
		if len(text) > textLimit || strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) {
			return fmt.Errorf("a key, name or address of %d bytes, %.40q: want one line of text, at most %d bytes", len(text), text, textLimit)
		}
	}
	return nil
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
