package elastic

// A rollback sets the variables to the last commit, and takes its checksums, while ranks meet again and others receive it.
type rollback struct {
	proceed chan bool // gets whether it may change the variables: true when no operation of the old world can write to them any more
	done    chan struct{}
	sums    []uint32 // of the items
	err     error
}

// beginRollback begins a rollback, unless one has begun since Run's function last ran. It returns at once.
func (s *State) beginRollback() {
	if s.rollback != nil || s.last == (commitID{}) {
		return
	}
	r := &rollback{proceed: make(chan bool, 1), done: make(chan struct{})}
	s.rollback = r
	go func() {
		defer close(r.done)
		r.sums = s.commit.checksums(s.items)
		if <-r.proceed {
			r.err = s.restore()
		}
	}()
}

// endRollback waits until no rollback changes the variables or reads the commit. If none has changed them yet, none will.
func (s *State) endRollback() {
	if s.rollback != nil {
		s.rollback.mayProceed(false)
		<-s.rollback.done
		s.rollback = nil
	}
}

func (r *rollback) mayProceed(may bool) {
	select {
	case r.proceed <- may:
	default: // that has been decided
	}
}
