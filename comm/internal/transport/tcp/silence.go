package tcp

import (
	"errors"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/network"
)

// A silence is how long another machine has not answered. The zero value is none.
type silence struct {
	since time.Time // zero: there is none
	noted time.Time // when the last call ended
}

// note takes the result of a call that began and ended at these times, and returns how long the silence lasts that the
// call is a part of; 0 if it is none. Errors of this machine, such as too many open files, neither end a silence nor
// make it longer.
func (s *silence) note(err error, began, ended time.Time) (lasts time.Duration) {
	silent := isSilent(err)
	switch {
	case answers(err):
		s.since = time.Time{}
	case silent && s.since.IsZero():
		s.since = began
	case !silent && !s.since.IsZero():
		s.since = s.since.Add(ended.Sub(s.noted))
	}
	s.noted = ended
	if silent {
		return ended.Sub(s.since)
	}
	return 0
}

// limit is when a call that begins at the time began has to give up, so that no silence lasts for longer than
// keepalive.Limit.
func (s *silence) limit(began time.Time) time.Time {
	if s.since.IsZero() {
		return began.Add(network.KeepAliveLimit)
	}
	return s.since.Add(network.KeepAliveLimit)
}

// answers reports whether a call that ended with err has heard from the other machine.
func answers(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return !ok || op.Op != "dial" || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}

// isSilent reports whether err says that the other machine does not answer, or that no way leads to it.
func isSilent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if _, named := errors.AsType[*net.DNSError](err); named || !ok || op.Op != "dial" { // then the name server is silent
		return false
	}
	return op.Timeout() || slices.ContainsFunc(unreachable, func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}

// unreachable are the errors by which this machine, or one on the way, says that it knows no way to the other machine.
var unreachable = []syscall.Errno{syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN}
