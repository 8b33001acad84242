package endpoint

import "errors"

// announcements are the messages that this rank has announced to a peer, and those that it may not announce yet.
type announcements struct {
	unanswered  int      // of those announced
	transfers   []uint64 // point to point, that wait; keys in Endpoint.sends, of which some may be over
	collectives []uint64
}

// line is where messages like op wait, and how many may be announced of its kind and others.
func (a *announcements) line(op *Op) (line *[]uint64, most int) {
	if op.seq > 0 {
		return &a.collectives, mostAnnounced
	}
	return &a.transfers, mostAnnounced - announceReserve
}

// isFree says whether no message like op waits.
func (a *announcements) isFree(op *Op) bool {
	line, _ := a.line(op)
	return len(*line) == 0
}

// announce tells p of op, or will as soon as it may. The mutex is held.
func (e *Endpoint) announce(p *peer, op *Op) {
	e.nextID++
	op.id = e.nextID
	e.sends[op.id] = op
	if line, most := p.announcements.line(op); len(*line) > 0 || p.announcements.unanswered >= most {
		*line = append(*line, op.id)
	} else {
		e.announceNow(p, op)
	}
}

func (e *Endpoint) announceNow(p *peer, op *Op) {
	p.announcements.unanswered++
	e.enqueue(p, frame{header: op.envelope(kindRTS)})
}

// announcementAnswered counts an answer of p's, after which it may be told of more. The mutex is held.
func (e *Endpoint) announcementAnswered(p *peer) error {
	a := &p.announcements
	if a.unanswered--; a.unanswered < 0 {
		return errors.New("answered a message that has not been announced to it")
	}
	e.announceMore(p, &a.collectives, mostAnnounced)
	e.announceMore(p, &a.transfers, mostAnnounced-announceReserve)
	return nil
}

func (e *Endpoint) announceMore(p *peer, line *[]uint64, most int) {
	for len(*line) > 0 && p.announcements.unanswered < most {
		op := e.sends[(*line)[0]]
		if *line = (*line)[1:]; op != nil {
			e.announceNow(p, op)
		}
	}
}
