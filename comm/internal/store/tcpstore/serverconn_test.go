package tcpstore

import (
	"errors"
	"net"
	"testing"

	"github.com/gorun/gorun/comm/internal/store/kv"
)

// replies returns how many replies are queued for the client.
func (c *serverConn) replies() int {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return len(c.out.buffers) / 2 // head and payload
}

func TestWaitsOfAClosedConnectionAreCancelled(t *testing.T) {
	state := kv.NewState()
	mine, theirs := net.Pipe()
	defer mine.Close()
	defer theirs.Close()
	leaver, stayer, setter := newServerConn(nil, mine), newServerConn(nil, mine), newServerConn(nil, mine)
	for _, c := range []*serverConn{leaver, stayer} {
		c.handle(state, request{kind: getKind, id: 1, key: "a"})
		c.handle(state, request{kind: waitKind, id: 2, key: "b"})
	}
	leaver.cancelAll(state)
	stayer.handle(state, request{kind: cancelKind, id: 1})
	for id, key := range []string{"a", "b"} {
		setter.handle(state, request{kind: setKind, id: uint64(id), key: key})
	}
	if n := leaver.replies(); n != 0 || len(leaver.waits) != 0 {
		t.Errorf("a client that left is sent %d replies and waits for %v", n, leaver.waits)
	}
	if n := stayer.replies(); n != 1 || len(stayer.waits) != 0 {
		t.Errorf("a client that has cancelled one of two waits is sent %d replies and waits for %v", n, stayer.waits)
	}
	for range 2 {
		stayer.handle(state, request{kind: getKind, id: 4, key: "c"})
	}
	if reason := stayer.reason.Load(); reason == nil || !errors.Is(*reason, errSameID) {
		t.Error("a client that gave two waits one id was not disconnected")
	}
}
