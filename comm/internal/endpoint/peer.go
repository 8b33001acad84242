package endpoint

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

type peerState int

const (
	stateIdle peerState = iota // no stream; perhaps one is on its way
	stateUp                    // conn is the stream
	stateGone                  // failure says why; final
)

// A peer is what this rank knows of another. Guarded by the endpoint's mutex, except where said.
type peer struct {
	rank     int
	state    peerState
	wanted   bool // some operation needs a stream
	dialing  bool // Endpoint.dial is running
	admitted bool // the peer's own dial has been let in and will be handed over
	left     bool // the peer has said goodbye
	fate     Fate // once its stream has ended without

	conn    net.Conn      // while up
	failure *Failure      // once gone
	settled chan struct{} // closed when up or gone
	gone    chan struct{} // closed when gone

	out     []frame       // to be written, in order
	broken  bool          // a write has failed; the reader will find out why
	wake    chan struct{} // tells the writer of work
	scratch []byte        // headers of the batch being written; the writer's own

	budget  int            // eager bytes that this rank may still send
	owed    int            // eager bytes consumed and not yet given back
	inbound map[uint64]*Op // receives whose data frame will come, by the sender's id
}

// A frame is queued to be written: a header, perhaps a payload, perhaps the operation that ends with it.
type frame struct {
	header
	payload []byte
	op      *Op
	sent    chan struct{} // closed when the frame has been written, or never will be; may be nil
}

func (f frame) settle() {
	if f.sent != nil {
		close(f.sent)
	}
}

func newPeer(rank int) *peer {
	return &peer{
		rank: rank, budget: eagerBudget, inbound: map[uint64]*Op{}, wake: make(chan struct{}, 1),
		settled: make(chan struct{}), gone: make(chan struct{}),
	}
}

func (p *peer) isSettled() bool {
	select {
	case <-p.settled:
		return true
	default:
		return false
	}
}

func (p *peer) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// enqueue queues f for p and wakes p's writer. The mutex is held.
func (e *Endpoint) enqueue(p *peer, f frame) {
	if p.state == stateGone {
		f.settle()
		return
	}
	p.out = append(p.out, f)
	p.poke()
}

// giveBack returns n bytes of p's eager budget, in large pieces. The mutex is held.
func (e *Endpoint) giveBack(p *peer, n int) {
	if p.owed += n; p.owed >= eagerBudget/4 {
		e.enqueue(p, frame{header: header{kind: kindCredit, size: uint64(p.owed)}})
		p.owed = 0
	}
}

// write is p's writer. It alone writes, so that nobody else can be held up by a peer that does not read.
func (e *Endpoint) write(p *peer) {
	defer e.wg.Done()
	for {
		select {
		case <-p.wake:
			e.mu.Lock()
			e.flush(p)
			e.mu.Unlock()
		case <-p.gone:
			return
		}
	}
}

// flush writes p's queue until it is empty. The mutex is held, except while writing.
func (e *Endpoint) flush(p *peer) {
	for p.state == stateUp && !p.broken && len(p.out) > 0 {
		batch := p.out
		p.out = nil
		for _, f := range batch {
			if f.op != nil {
				f.op.held = true
			}
		}
		e.mu.Unlock()
		err := p.writeBatch(batch)
		e.mu.Lock()
		if err != nil && p.state == stateUp {
			// The peer's last words may still wait to be read, a goodbye perhaps: the reader decides, and drop ends
			// what stays in the queue.
			p.broken = true
			conn := p.conn
			time.AfterFunc(time.Second, func() { _ = conn.Close() })
		}
		for _, f := range batch {
			switch {
			case f.op == nil:
				f.settle()
			case err == nil:
				f.op.release()
			case f.op.abandoned():
				if p.state == stateGone {
					f.op.lane.failBy(p.failure)
				}
			case p.state == stateGone: // its lane has been closed
				f.op.held = false
				f.op.finish(p.failure)
			default:
				f.op.held = false
				p.out = append(p.out, f)
			}
		}
	}
}

func (p *peer) writeBatch(batch []frame) error {
	p.scratch = p.scratch[:0]
	for _, f := range batch {
		p.scratch = f.append(p.scratch)
	}
	bufs := make(net.Buffers, 0, 2*len(batch))
	for i, f := range batch {
		bufs = append(bufs, p.scratch[i*headerSize:(i+1)*headerSize])
		if len(f.payload) > 0 {
			bufs = append(bufs, f.payload)
		}
	}
	_, err := bufs.WriteTo(p.conn)
	return err
}

// readPayload fills buf from r. It is interrupted by a read deadline in the past (see Op.end), after which
// abandoned says, with the mutex held, whether the rest is to be thrown away.
func (e *Endpoint) readPayload(p *peer, r io.Reader, buf []byte, abandoned func() bool) error {
	for len(buf) > 0 {
		n, err := r.Read(buf)
		buf = buf[n:]
		if err == nil || len(buf) == 0 {
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return unexpected(err)
		}
		e.mu.Lock()
		_ = p.conn.SetReadDeadline(time.Time{})
		stop := abandoned != nil && abandoned()
		e.mu.Unlock()
		if stop {
			return e.discard(p, r, len(buf))
		}
	}
	return nil
}

// discard reads n bytes from r and throws them away.
func (e *Endpoint) discard(p *peer, r io.Reader, n int) error {
	waste := make([]byte, min(n, eagerLimit))
	for n > 0 {
		m := min(n, len(waste))
		if err := e.readPayload(p, r, waste[:m], nil); err != nil {
			return err
		}
		n -= m
	}
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// describe puts the error of a broken stream into words that say what happened to the peer.
func describe(err error) string {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		return "died (its connection closed without goodbye)"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "died (connection reset)"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "died or left (connection refused)"
	}
	return err.Error()
}
