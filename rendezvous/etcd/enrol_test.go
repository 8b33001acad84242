package etcd

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// TestEnrol: the first node sets what the others must have set the same, whatever a node knows when it comes.
func TestEnrol(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	lease, err := client.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	config := func(value string) configDoc {
		return configDoc{Job: "job-" + value, Host: "host-" + value, Settings: rendezvous.Settings{"nnodes": value}}
	}
	outdated := jobConfig{configDoc: config("1"), rev: 1}
	in := func(w *writer, mine configDoc, known jobConfig) error {
		self := nodeDoc{Node: rendezvous.Node{Host: "h", NodeRank: -1, Nproc: 1}, Port: 1}
		_, err := w.enrol(t.Context(), enrolment{lease: lease.ID, retention: time.Minute, mine: mine, self: self}, known, known.rev > 0)
		return err
	}
	for what, c := range map[string]struct {
		known    jobConfig
		first    string // has been there
		gone     bool   // and is not any more
		closed   bool
		conflict string
		keys     int // that are left
	}{
		"nobody":                       {keys: 2},
		"nobody now":                   {known: outdated, keys: 2},
		"the same":                     {first: "1", keys: 3},
		"the same, and others before":  {known: jobConfig{configDoc: config("2"), rev: 1}, first: "1", keys: 3},
		"others":                       {first: "2", conflict: `this node: nnodes 1; the job: nnodes 2 (set by host-2)`, keys: 2},
		"others, and the same before":  {known: outdated, first: "2", conflict: `this node: nnodes 1; the job: nnodes 2 (set by host-2)`, keys: 2},
		"others who are gone":          {first: "2", gone: true, keys: 2},
		"the same of one who is gone":  {first: "1", gone: true, keys: 2},
		"a closed job":                 {closed: true, keys: 1},
		"a job that was open, and has": {known: outdated, closed: true, keys: 1},
	} {
		w := writer{client: client, keys: keysOf(DefaultPrefix, what), key: "n"}
		if c.first != "" {
			other := w
			other.key = "other"
			if err := in(&other, config(c.first), jobConfig{}); err != nil {
				t.Fatal(err)
			}
			if c.gone {
				remove(t, &other, other.keys.node(other.key))
			}
		}
		if c.closed {
			put(t, &w, w.keys.state())
		}
		err := in(&w, config("1"), c.known)
		var conflict *rendezvous.MisuseError
		switch {
		case c.conflict == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case c.conflict != "" && (!errors.As(err, &conflict) || !strings.Contains(err.Error(), c.conflict)):
			t.Errorf("%s: %v, want %s", what, err, c.conflict)
		}
		if left := keysLeft(t, client, w.keys.root); len(left) != c.keys {
			t.Errorf("%s: there are %q, want %d keys", what, left, c.keys)
		}
	}
}

// TestEnrolTogether: of nodes that come at the same time with different settings, those with the same get in.
func TestEnrolTogether(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	lease, err := client.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	keys := keysOf(DefaultPrefix, "job")
	errs := make([]error, 20)
	var all sync.WaitGroup
	for i := range errs {
		w := writer{client: client, keys: keys, key: string(rune('a' + i))}
		mine := configDoc{Host: w.key, Settings: rendezvous.Settings{"parity": string(rune('0' + i%2))}}
		all.Go(func() {
			self := nodeDoc{Node: rendezvous.Node{Host: "h", NodeRank: -1, Nproc: 1}, Port: 1}
			_, errs[i] = w.enrol(t.Context(), enrolment{lease: lease.ID, retention: time.Minute, mine: mine, self: self}, jobConfig{}, false)
		})
	}
	all.Wait()
	for i, err := range errs {
		var conflict *rendezvous.MisuseError
		in := err == nil
		if in == (errs[(i+1)%2] == nil) || !in && !errors.As(err, &conflict) {
			t.Errorf("%c: %v", 'a'+i, err)
		}
	}
	if left := keysLeft(t, client, keys.nodes()); len(left) != len(errs)/2 {
		t.Errorf("the nodes are %q", left)
	}
}
