package comm

import (
	"context"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// Probe waits for a message from rank src of g (or AnySource) with tag (0 unless given; or AnyTag) that no receive has
// taken, and tells what a Recv would get: source, tag and length, by which to choose a buffer. The message stays where
// it is. When several goroutines receive, another may take it first.
func Probe(ctx context.Context, g *Group, src int, tag ...int) (Status, error) {
	t, err := probeOp(g, src, tag).run(ctx)
	if err != nil {
		return Status{}, err
	}
	return t.probed(), nil
}

// TryProbe is Probe without waiting: found says whether there is a message.
func TryProbe(g *Group, src int, tag ...int) (st Status, found bool, err error) {
	t := probeOp(g, src, tag).start()
	if t.op != nil && t.op.Withdraw() {
		return Status{}, false, nil
	}
	if err := t.result(); err != nil {
		return Status{}, false, err
	}
	return t.probed(), true, nil
}

func probeOp(g *Group, src int, tag []int) P2POp {
	op := newP2P[byte](g, callProbe, nil, src, tag)
	op.mayBeAny()
	return op
}

// probed is the status of t, a probe that has seen a message: its elements are of the sender's type.
func (t *transfer) probed() Status {
	t.elem = reduce.Type(t.op.Type()).Size()
	return t.status()
}
