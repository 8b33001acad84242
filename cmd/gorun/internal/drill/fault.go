package drill

import "time"

// A fault is what a scenario breaks, and when the job was seen to react. The zero value is none.
type fault struct {
	what        string
	hits        func(*worker) bool // which workers
	exitCode    int                // with which it ends them, as in package death; 0: it ends none by itself
	outOfMemory bool               // it ends them because memory runs out

	at        time.Time // zero: there is no fault yet
	noticed   time.Time // when somebody else reacted; zero: not yet
	newRound  time.Time // when the first worker was in a new round; zero: not yet
	recovered time.Time // when all workers that are expected had computed in a new round; zero: not yet
	before    int       // the newest round at the time of the fault
}

func (f *fault) happened() bool { return !f.at.IsZero() }

// react records that something has happened to a worker.
func (f *fault) react(at time.Time, k *worker) {
	if f.hits == nil {
		return
	}
	if k.Round > f.before && f.newRound.IsZero() {
		f.newRound = at
	}
	if !f.hits(k) && f.noticed.IsZero() {
		f.noticed = at
	}
}

func onNode(node int) func(*worker) bool { return func(k *worker) bool { return k.Node == node } }

func nobody(*worker) bool { return false }
