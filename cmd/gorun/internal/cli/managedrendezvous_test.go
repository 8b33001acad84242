package cli

import (
	"context"
	"testing"

	"github.com/gorun/gorun/rendezvous"
)

// TestManagedIsAskedWhileItWaits: while a node waits for its token, which may take long, it says at once that nothing is open.
func TestManagedIsAskedWhileItWaits(t *testing.T) {
	waits, enough := make(chan struct{}), make(chan struct{})
	m := &managedRendezvous{byMunge: true, waiting: func(string) {}, limit: func(ctx context.Context) (context.Context, context.CancelFunc) {
		close(waits)
		<-enough
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	}}
	joined := make(chan error, 1)
	go func() {
		_, err := m.Join(t.Context(), rendezvous.Node{})
		joined <- err
	}()
	<-waits
	if host, ok := rendezvous.As[rendezvous.Host](m); ok {
		t.Errorf("a host: %v", host)
	}
	close(enough)
	if err := <-joined; err == nil {
		t.Error("it has joined without a token")
	}
}
