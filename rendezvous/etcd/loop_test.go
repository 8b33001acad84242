package etcd

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/env/logtest"
)

// TestHear: a change that has been read already, or that decides nothing, does not cause a read.
func TestHear(t *testing.T) {
	t.Parallel()
	k := keysOf(DefaultPrefix, "job")
	put, remove := clientv3.EventTypePut, clientv3.EventTypeDelete
	const status = `{"version":1,"is":{"wait":"news"}}`
	for _, c := range []struct {
		what   string
		kind   mvccpb.Event_EventType
		key    string
		rev    int64
		text   string
		read   bool
		status string
	}{
		{"a round", put, k.current(), 11, "", true, "before"},
		{"a round that has been read", put, k.current(), 10, "", false, "before"},
		{"the end", put, k.state(), 11, "", true, "before"},
		{"a leader", put, k.leader(), 11, `{"version":1,"is":{"key":"k","host":"h"}}`, false, "before"},
		{"a leader's end", remove, k.leader(), 11, "", true, "before"},
		{"a status", put, k.status(), 11, status, false, "news"},
		{"a status from before", put, k.status(), 9, status, false, "before"},
		{"a status that is none", put, k.status(), 11, "nonsense", true, "before"},
	} {
		l := &loop{etcd: writer{keys: k}, view: &view{rev: 10, status: "before"}}
		l.onEvents([]*clientv3.Event{{Type: c.kind, Kv: &mvccpb.KeyValue{Key: []byte(c.key), ModRevision: c.rev, CreateRevision: c.rev, Value: []byte(c.text)}}})
		if l.dirty != c.read || l.view.status != c.status || (l.view.leader != nil) != (c.what == "a leader") {
			t.Errorf("%s: to be read: %t, the view is %+v", c.what, l.dirty, l.view)
		}
	}
	l := &loop{view: new(view)}
	if l.onEvents(nil); !l.dirty {
		t.Error("nothing is read when the watch begins")
	}
}

// TestOutageIsLookedInto: a request that fails causes a read. No other request may follow, and what waits for etcd should not wait
// until the job is read anyway.
func TestOutageIsLookedInto(t *testing.T) {
	t.Parallel()
	l := &loop{ctx: t.Context(), requests: map[request]bool{explaining: true}, view: new(view), etcd: writer{client: clientv3.NewCtxClient(t.Context())}, config: &Config{
		Log: slog.New(slog.DiscardHandler), JoinTimeout: time.Hour,
	}}
	l.onFailure(context.DeadlineExceeded)
	if l.outage.IsZero() || !l.dirty {
		t.Errorf("an outage since %v; to be read: %t", l.outage, l.dirty)
	}
}

// TestBriefOutage: an outage is logged only if it still lasts when its cause is known.
func TestBriefOutage(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	l := &loop{config: &Config{Log: log.Logger()}}
	l.onExplained(context.DeadlineExceeded)
	if said := log.String(); said != "" {
		t.Errorf("of one that is over it says %q", said)
	}
	l.outage = time.Now()
	l.onExplained(context.DeadlineExceeded)
	if said := log.String(); !strings.Contains(said, "etcd cannot be used") || !l.warnedOf.Equal(l.outage) {
		t.Errorf("of one that lasts it says %q", said)
	}
}
