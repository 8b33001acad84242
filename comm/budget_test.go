package comm

import (
	"context"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// However many short messages have gone both ways, the next one still goes before anybody asks for it.
func TestShortMessagesGoAheadForEver(t *testing.T) {
	testkit.WithoutRace(t)
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		defer w.close()
		sent := make(chan struct{})
		w.run(func(ctx context.Context, g *Group) error {
			buf, peer := make([]byte, 8), 1-g.Rank()
			for range testkit.UnlessShort(10_000, 3_000) {
				if err := pingPong(ctx, g, buf); err != nil {
					return err
				}
			}
			if g.Rank() == 0 {
				defer close(sent)
				return Send(ctx, g, buf, peer)
			}
			<-sent
			_, err := Recv(ctx, g, buf, peer)
			return err
		})
	})
}
