package wire

import (
	"errors"
	"fmt"
)

// A receiver keeps what comes before a receive is posted for it. Both sides count that. The sender stops at a limit. The receiver, whose
// memory it takes, cuts off a peer that does not stop. Both count until the sender has been allowed to go on, so an honest sender never
// reaches the receiver's limit:
//
//	eager messages     bytes, up to EagerCredit, until a Credit frame returns them
//	RTS                their number, up to MaxRTS, until a CTS or a Decline answers them
//
// Messages for which no RTS may be sent yet wait at the sender, in their order.

const (
	// EagerCredit bounds the eager bytes from one peer.
	EagerCredit = 8 << 20
	// EagerReserve is the part of it that messages point to point leave to chunks of collectives.
	EagerReserve = 6 << 20
	// MessageCost is what an eager message takes of the credit beside its bytes. It bounds the number of short messages, so that a search
	// through them does not take long.
	MessageCost = 1 << 10
	// CreditStep is how much credit is returned at once.
	CreditStep = 512 << 10
	// MaxRTS bounds the unanswered RTS to one peer.
	MaxRTS = 64 << 10
	// RTSReserve is the part of it that messages point to point leave to chunks of collectives.
	RTSReserve = 16 << 10
)

// A SendCredit counts what this rank has sent to a peer that the peer may not have expected.
type SendCredit struct {
	Unanswered int      // RTS
	used       int      // by eager messages
	transfers  []uint64 // messages point to point that wait for their RTS, by ID
	chunks     []uint64 // chunks of collectives that do
}

// queue returns where messages wait, point to point or of collective seq, and how many RTS there may be.
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
	if len(*queue) > 0 || s.Unanswered >= most {
		*queue = append(*queue, id)
		return false
	}
	s.Unanswered++
	return true
}

// Answered counts the answer to an RTS, after which more may be sent. For each message whose turn has come it calls announce, which
// sends the RTS and returns true, or returns false if the message is over.
func (s *SendCredit) Answered(announce func(id uint64) bool) error {
	if s.Unanswered--; s.Unanswered < 0 {
		return errors.New("answered a message that has not been announced to it")
	}
	for _, seq := range [...]uint64{1, 0} {
		queue, most := s.queue(seq)
		for len(*queue) > 0 && s.Unanswered < most {
			id := (*queue)[0]
			if *queue = (*queue)[1:]; announce(id) {
				s.Unanswered++
			}
		}
	}
	return nil
}

// A ReceiveCredit counts what a peer has sent that may not have been expected here, until the peer knows that it may go on.
type ReceiveCredit struct {
	EagerBytes int // with MessageCost for each message
	Announced  int // messages, by RTS
	consumed   int // eager bytes for which no credit has been returned
}

// Eager counts an eager message of n bytes.
func (r *ReceiveCredit) Eager(n int) error {
	if r.EagerBytes += n + MessageCost; r.EagerBytes > EagerCredit {
		return fmt.Errorf("sent %d bytes in advance, limit %d", r.EagerBytes, EagerCredit)
	}
	return nil
}

// RTS counts an RTS.
func (r *ReceiveCredit) RTS() error {
	if r.Announced++; r.Announced > MaxRTS {
		return fmt.Errorf("announced %d messages, limit %d", r.Announced, MaxRTS)
	}
	return nil
}

// Consume counts an eager message of n bytes whose memory is free again. It returns the credit to return to the peer now, or 0: credit
// goes back in large steps.
func (r *ReceiveCredit) Consume(n int) (credit uint64) {
	if r.consumed += n + MessageCost; r.consumed >= CreditStep {
		credit, r.consumed = uint64(r.consumed), 0
	}
	return credit
}

// Sent says that a frame is written to the peer, which may go on when it has got it.
func (r *ReceiveCredit) Sent(h *Header) {
	switch h.Kind {
	case Credit:
		r.EagerBytes -= int(h.Size)
	case CTS, Decline:
		r.Announced--
	default:
	}
}
