package wire

import (
	"errors"
	"fmt"
)

// What a peer sends before anybody expects it is kept until somebody does. So both sides count it: the sender stops at a limit,
// and the receiver, whose memory it is, cuts off a peer that does not. Both count until the sender is told that it may go on, so
// that an honest one never reaches the receiver's limit:
//
//	eager messages     bytes, up to EagerCredit, until a Credit frame returns them
//	RTS                their number, up to MaxRTS, until they are answered: CTS, or Decline
//
// Messages for which no RTS may be sent yet wait at the sender, in their order.

const (
	// EagerCredit bounds what one peer may have sent eagerly and not yet seen consumed: chunks of collectives alone may use the
	// reserve.
	EagerCredit  = 8 << 20
	EagerReserve = 6 << 20
	// MessageCost is what an eager message takes of that beside its bytes, which keeps short ones from coming in such numbers that to
	// look through them takes long.
	MessageCost = 1 << 10
	// CreditStep is how much of that is returned at once.
	CreditStep = 512 << 10
	// MaxRTS is how many messages to one peer may have been announced and not been answered. Only chunks of collectives may
	// use the reserve.
	MaxRTS     = 64 << 10
	RTSReserve = 16 << 10
)

// A SendCredit is how much this rank may still send to a peer.
type SendCredit struct {
	used       int      // by eager messages
	unanswered int      // RTS
	transfers  []uint64 // messages point to point that wait for their RTS, by ID
	chunks     []uint64 // chunks of collectives that do
}

// queue is where messages wait, point to point or of collective seq, and how many RTS there may be.
func (s *SendCredit) queue(seq uint64) (queue *[]uint64, most int) {
	if seq > 0 {
		return &s.chunks, MaxRTS
	}
	return &s.transfers, MaxRTS - RTSReserve
}

// HasWaiting reports whether messages wait, point to point or of collectives.
func (s *SendCredit) HasWaiting(seq uint64) bool {
	queue, _ := s.queue(seq)
	return len(*queue) > 0
}

// Fits reports whether the message h may be sent eagerly.
func (s *SendCredit) Fits(h *Header) bool {
	left := EagerCredit - s.used
	if h.Seq == 0 {
		left -= EagerReserve
	}
	return h.Size <= h.EagerLimit() && int(h.Size)+MessageCost <= left && !s.HasWaiting(h.Seq)
}

// FitsShort reports whether a short message of n bytes, point to point, may be sent eagerly: it may use the reserve.
func (s *SendCredit) FitsShort(n int) bool {
	return n+MessageCost <= EagerCredit-s.used && len(s.transfers) == 0
}

// Use counts n bytes that are sent eagerly, as one message.
func (s *SendCredit) Use(n int) { s.used += n + MessageCost }

// Return takes back what a Credit frame returns.
func (s *SendCredit) Return(n uint64) error {
	if s.used -= int(n); s.used < 0 {
		return fmt.Errorf("gave back %d bytes more than it was sent", -s.used)
	}
	return nil
}

// Announce reports whether the RTS of message id, point to point or of collective seq, may be sent now, and counts it then. If not, the
// message waits.
func (s *SendCredit) Announce(id, seq uint64) bool {
	queue, most := s.queue(seq)
	if len(*queue) > 0 || s.unanswered >= most {
		*queue = append(*queue, id)
		return false
	}
	s.unanswered++
	return true
}

// Unanswered is the number of RTS that have not been answered.
func (s *SendCredit) Unanswered() int { return s.unanswered }

// Answered counts the answer to an RTS, after which more may be sent. For each message whose turn has come it calls announce, which
// sends the RTS and returns true, or returns false if the message is over.
func (s *SendCredit) Answered(announce func(id uint64) bool) error {
	if s.unanswered--; s.unanswered < 0 {
		return errors.New("answered a message that has not been announced to it")
	}
	for _, seq := range [...]uint64{1, 0} {
		queue, most := s.queue(seq)
		for len(*queue) > 0 && s.unanswered < most {
			id := (*queue)[0]
			if *queue = (*queue)[1:]; announce(id) {
				s.unanswered++
			}
		}
	}
	return nil
}

// A ReceiveCredit is what a peer has sent to this rank that was not expected, and does not know to have been dealt with.
type ReceiveCredit struct {
	eager    int // bytes
	rts      int // messages
	consumed int // eager bytes for which no credit has been returned
}

// Eager counts an eager message of n bytes.
func (r *ReceiveCredit) Eager(n int) error {
	if r.eager += n + MessageCost; r.eager > EagerCredit {
		return fmt.Errorf("sent %d bytes in advance, limit %d", r.eager, EagerCredit)
	}
	return nil
}

// RTS counts an RTS.
func (r *ReceiveCredit) RTS() error {
	if r.rts++; r.rts > MaxRTS {
		return fmt.Errorf("announced %d messages, limit %d", r.rts, MaxRTS)
	}
	return nil
}

// Consume counts an eager message of n bytes that is not kept any longer, and returns how much credit is to be returned now: in large
// steps, or 0.
func (r *ReceiveCredit) Consume(n int) (credit uint64) {
	if r.consumed += n + MessageCost; r.consumed >= CreditStep {
		credit, r.consumed = uint64(r.consumed), 0
	}
	return credit
}

// Sent says that a frame has been written to the peer, which now knows that it may go on.
func (r *ReceiveCredit) Sent(h *Header) {
	switch h.Kind {
	case Credit:
		r.eager -= int(h.Size)
	case CTS, Decline:
		r.rts--
	default:
	}
}

// Pending is what is counted: bytes of eager messages, and RTS.
func (r *ReceiveCredit) Pending() (eager, rts int) { return r.eager, r.rts }
