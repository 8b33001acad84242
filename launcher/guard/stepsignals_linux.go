package guard

import (
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	// stepDelay is how long one signal may take to reach all processes of a step: slurmstepd signals them one after another.
	stepDelay = 100 * time.Millisecond
	// passDelay is how long the agent may take to pass a signal on that has reached this process too: it may ask slurmctld first.
	passDelay = 5 * time.Second
)

// stepSignals are the signals that this process gets itself. If whoever signals the agent may signal every process below it too, as Slurm
// does with some of its plugins, then these have reached the workers, and the others have not.
type stepSignals struct {
	ending  []syscall.Signal // those that end the job; empty: nobody does so, and this process drops its signals
	arrived <-chan os.Signal
	at      map[syscall.Signal][]time.Time // when each came that the agent has not passed on yet
	ended   syscall.Signal                 // the first that ends the job; 0: none has come
	awaited time.Time                      // the last one that did not come
}

// begin forgets what has come before a gang, when nobody was there to get it.
func (s *stepSignals) begin(ending []int) {
	s.ending, s.ended = nil, 0
	s.await(0, 0)
	clear(s.at)
	for _, n := range ending {
		s.ending = append(s.ending, syscall.Signal(n))
	}
}

// reached reports whether the workers have got a signal that the agent passes on. It may wait for stepDelay.
func (s *stepSignals) reached(sig syscall.Signal) bool {
	if len(s.ending) == 0 {
		return false
	}
	s.at[sig] = slices.DeleteFunc(s.at[sig], func(at time.Time) bool { return time.Since(at) > passDelay })
	s.await(sig, stepDelay)
	if len(s.at[sig]) == 0 {
		return false
	}
	s.at[sig] = s.at[sig][1:]
	return true
}

// endedBy returns the signal, which reached all workers, of which one has ended; 0: it was not that. If the worker was killed by such a
// signal, which may not have come here yet, it may wait for stepDelay.
func (s *stepSignals) endedBy(status syscall.WaitStatus) syscall.Signal {
	if len(s.ending) == 0 {
		return 0
	}
	delay := time.Duration(0)
	if status.Signaled() && slices.Contains(s.ending, status.Signal()) && time.Since(s.awaited) > time.Second {
		delay = stepDelay
	}
	s.await(status.Signal(), delay)
	return s.ended
}

// await takes in what has arrived, and waits for sig if it has not.
func (s *stepSignals) await(sig syscall.Signal, atMost time.Duration) {
	for {
		select {
		case got := <-s.arrived:
			s.add(got)
			continue
		default:
		}
		break
	}
	if len(s.at[sig]) > 0 || atMost == 0 {
		return
	}
	for late := time.After(atMost); len(s.at[sig]) == 0; {
		select {
		case got := <-s.arrived:
			s.add(got)
		case <-late:
			s.awaited = time.Now()
			return
		}
	}
}

func (s *stepSignals) add(got os.Signal) {
	sig, ok := got.(syscall.Signal)
	if !ok || len(s.ending) == 0 {
		return
	}
	s.at[sig] = append(s.at[sig], time.Now())
	if s.ended == 0 && slices.Contains(s.ending, sig) {
		s.ended = sig
	}
}
