package endpoint

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/transport"
)

// joining is a transport to peers that are still joining: they accept no connection.
type joining struct{ transport.Alone }

func (joining) Dial(ctx context.Context, _ int) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestStillJoining: nobody says of a rank that may still be joining that it has stopped.
func TestStillJoining(t *testing.T) {
	t.Parallel()
	e := New(joining{}, 0, 2, Options{})
	defer func() { _ = e.Close() }()
	c, err := e.Open(1, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	const want = "does not answer: it has accepted no connection: it is still joining, has stopped, or is cut off"
	if err := c.Recv(1, 9, 0, call.Call{}, make([]byte, 1)).Wait(t.Context(), 2*time.Second); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
}
