package comm

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
)

// aMinute is a caller that gives a call a minute.
type aMinute struct{ ctx context.Context }

func (a aMinute) Context() context.Context { return a.ctx }

func (aMinute) Remaining() time.Duration { return time.Minute }

// However many chunks have gone, the next ones go ahead of the order of steps: here rank 1 waits for some before it
// sends what rank 0 waits for.
func TestChunksGoAheadHoweverManyHaveGone(t *testing.T) {
	const before, ahead = 100, 4
	w := worldOver(t, "tcp", 2)
	defer w.close()
	w.run(func(ctx context.Context, g *Group) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		peer := 1 - g.Rank()
		p, sends, receives := plan.Plan{}, plan.Plan{}, plan.Plan{}
		for i := range before + ahead {
			r := plan.Range{Lo: i, Hi: i + 1}
			if i < before || g.Rank() == 0 {
				p = append(p, plan.Step{To: peer, Send: r, From: peer, Recv: r})
				continue
			}
			receives = append(receives, plan.Step{To: plan.None, From: peer, Recv: r})
			sends = append(sends, plan.Step{To: peer, Send: r, From: plan.None})
		}
		p = append(append(p, receives...), sends...)
		out, in := bytes.Repeat([]byte{byte(g.Rank())}, before+ahead), make([]byte, before+ahead)
		call := pipeline.Call{Seq: 1, Call: call.Call{Kind: call.KindAllGather}, Elem: 1, Caller: aMinute{ctx}}

		if err := g.core.Comm.Begin(call.Seq, call.Call, 0); err != nil {
			return err
		}
		err := g.core.Pipeline().Run(call, &pipeline.Task{Plan: p, Src: pipeline.Vector{Buf: out}, Dst: pipeline.Vector{Buf: in}})
		if err != nil || !bytes.Equal(in, bytes.Repeat([]byte{byte(peer)}, before+ahead)) {
			return fmt.Errorf("got %v, %w", in, err)
		}
		return nil
	})
}
