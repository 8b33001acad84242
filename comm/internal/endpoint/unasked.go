package endpoint

import "fmt"

// What a peer sends without being asked is kept until somebody wants it. So both sides count it: the sender stops at a limit,
// and the receiver, whose memory it is, cuts off a peer that does not. Both count until the sender is told that it may go on, so
// that an honest one never reaches the receiver's limit:
//
//	eager messages     bytes, up to eagerBudget, until a credit gives them back
//	announcements      their number, up to mostAnnounced, until they are answered: clear to send, or declined
//
// Of groups that this rank has not opened it also keeps who has left them, up to mostUnopened, and why they have failed, up to
// retiredLanes.
//
// Messages that may not be announced yet wait at the sender, in their order.

const (
	// mostAnnounced is how many messages to one peer may have been announced and not been answered. Only pieces of collectives may
	// use the reserve.
	mostAnnounced   = 64 << 10
	announceReserve = 16 << 10
	// mostUnopened is how many groups one peer may have left before this rank has opened them. To make a group takes all its
	// ranks, so an honest peer is ahead by one for each group that groups are made of.
	mostUnopened = 16 << 10
)

// unasked is what a peer has sent to this rank without being asked, and does not know to have been dealt with.
type unasked struct {
	eager     int // bytes
	announced int // messages
	left      int // groups that this rank has not opened
	failed    int // of those, too
}

// keepEager counts the eager message h.
func (u *unasked) keepEager(h *header) error {
	if u.eager += h.cost(); u.eager > eagerBudget {
		return fmt.Errorf("sent %d bytes in advance, limit %d", u.eager, eagerBudget)
	}
	return nil
}

func (u *unasked) keepAnnounced() error {
	if u.announced++; u.announced > mostAnnounced {
		return fmt.Errorf("announced %d messages, limit %d", u.announced, mostAnnounced)
	}
	return nil
}

// settle says that f has been written to the peer.
func (u *unasked) settle(f *frame) {
	switch f.kind {
	case kindCredit:
		u.eager -= int(f.size)
	case kindCTS, kindDecline:
		u.announced--
	default:
	}
}
