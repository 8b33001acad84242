package endpoint

import "errors"

// announcements are the messages that this rank has announced to a peer, and those that it may not announce yet.
type announcements struct {
	unanswered  int      // of those announced
	transfers   []uint64 // point to point, that wait; keys in Endpoint.sends, of which some may be over
	collectives []uint64
}

// line is where messages like op wait.
func (a *announcements) line(op *Op) *[]uint64 {
	if op.seq > 0 {
		return &a.collectives
	}
	return &a.transfers
}

// announce tells p of op, or will as soon as it may. The mutex is held.
func (e *Endpoint) announce(p *peer, op *Op) {
	e.nextID++
	op.id = e.nextID
	e.sends[op.id] = op
	line := p.announcements.line(op)
	*line = append(*line, op.id)
	e.announceMore(p)
}

// announcementAnswered counts an answer of p's. The mutex is held.
func (e *Endpoint) announcementAnswered(p *peer) error {
	if p.announcements.unanswered--; p.announcements.unanswered < 0 {
		return errors.New("answered a message that has not been announced to it")
	}
	e.announceMore(p)
	return nil
}

// announceMore tells p of as many messages as it may be told of. The mutex is held.
func (e *Endpoint) announceMore(p *peer) {
	e.announceLine(p, &p.announcements.collectives, mostAnnounced)
	e.announceLine(p, &p.announcements.transfers, mostAnnounced-announceReserve)
}

func (e *Endpoint) announceLine(p *peer, line *[]uint64, most int) {
	for len(*line) > 0 && p.announcements.unanswered < most {
		op := e.sends[(*line)[0]]
		if *line = (*line)[1:]; op != nil {
			p.announcements.unanswered++
			e.enqueue(p, frame{header: op.envelope(kindRTS)})
		}
	}
}
