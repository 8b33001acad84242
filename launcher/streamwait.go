package launcher

import (
	"time"

	"github.com/gorun/gorun/launcher/spool"
)

// wakeAt makes the reader wake at this time, or at once if sync waits for it: the deadline that sync set must not be lost.
func (s *stream) wakeAt(at time.Time) error {
	err := s.pipe.SetReadDeadline(at)
	if s.syncing.Load() {
		return s.pipe.SetReadDeadline(time.Unix(1, 0))
	}
	return err
}

// awaitQueues returns when all destinations of the stream have room, or when wake is called.
func (s *stream) awaitQueues() {
	defer s.isBlocked.Store(false)
	most := streamShare
	if s.isStopping.Load() {
		most = leaverShare
	}
	for _, source := range [...]*spool.Source{s.shown, s.stored, s.selected} {
		if source == nil {
			continue
		}
		if full := source.Full(most); full != nil {
			s.isBlocked.Store(true)
			select {
			case <-full:
			case <-s.hurry:
				return
			}
		}
	}
}

// wake ends a wait for room.
func (s *stream) wake() {
	select {
	case s.hurry <- struct{}{}:
	default:
	}
}

// stopping is called when the worker is being stopped.
func (s *stream) stopping() {
	s.isStopping.Store(true)
	s.wake()
}

// sync waits until everything that is in the pipe now has been passed on, and returns the last lines. The worker has exited, so this is
// all that it wrote. It is at most as much as a pipe holds, for which there is always room. sync does not wait for other processes that
// hold the pipe and may go on writing. Only one call may run at a time.
func (s *stream) sync() []string {
	s.syncing.Store(true)
	_ = s.pipe.SetReadDeadline(time.Unix(1, 0)) // wakes the reader; fails only if it has ended
	s.wake()
	select {
	case last := <-s.synced:
		return last
	case <-s.done:
		return s.last()
	}
}
