package endpoint

import "github.com/gorun/gorun/comm/internal/wire"

// burstLimit is how long messages may be that go together with others, in bytes.
const burstLimit = 32 << 10

type frame = wire.Frame[*Op]

// enqueue queues f for p, and writes it at once if that is possible. The mutex is held.
func (e *Endpoint) enqueue(p *peer, f frame) {
	if p.state == stateGone || p.dismissed {
		f.Settle()
		return
	}
	e.engine.CountWrite(p.link, f.Kind == wire.Eager && f.Size <= burstLimit)
	p.out.Add(f)
	if p.out.Len() == 1 {
		e.write(p)
	}
}

// wrote counts n bytes that have been written, and ends the operations that they complete. The mutex is held.
func (p *peer) wrote(n int) {
	whole := p.out.Wrote(n)
	for i := range whole {
		f := &whole[i]
		p.received.Sent(&f.Header)
		f.Settle()
		if f.Op != nil {
			f.Op.finish(nil)
		}
	}
	clear(whole)
}

// consume returns credit for an eager message of n bytes from p that is not kept any longer. The mutex is held.
func (e *Endpoint) consume(p *peer, n int) {
	if credit := p.received.Consume(n); credit > 0 {
		e.enqueue(p, frame{Header: wire.Header{Kind: wire.Credit, Size: credit}})
	}
}

// announce tells p of op, or will as soon as it may. The mutex is held.
func (e *Endpoint) announce(p *peer, op *Op) {
	e.nextID++
	op.id = e.nextID
	e.sends[op.id] = op
	if p.sent.Announce(op.id, op.seq) {
		e.enqueue(p, frame{Header: op.envelope(wire.RTS)})
	}
}

// answeredRTS takes in that p has answered an RTS, after which it may be told of more messages. The mutex is held.
func (e *Endpoint) answeredRTS(p *peer) error {
	return p.sent.Answered(func(id uint64) bool {
		op := e.sends[id]
		if op != nil {
			e.enqueue(p, frame{Header: op.envelope(wire.RTS)})
		}
		return op != nil
	})
}
