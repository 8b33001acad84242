package endpoint

// The mutex of an endpoint guards all its state. Endpoint, Communicator and Op are the API, whose methods are called
// without the mutex. Each has a second type with the same fields (state, communicator, operation), whose methods are
// called with the mutex held. Only lock makes one of the other. So the compiler finds a method that would wait for a
// mutex that its goroutine holds. What lock has returned is called in (but in inbox.go that is an inbox). What belongs to
// a peer, a stall, a monitor or an inbox is reached only with the mutex held, too. Package core says in which order locks
// are taken.

// lock waits for the mutex.
func (e *Endpoint) lock() *state {
	e.mu.Lock()
	return (*state)(e)
}

func (e *state) unlock() { e.mu.Unlock() }

// api returns e for goroutines that begin without the mutex.
func (e *state) api() *Endpoint { return (*Endpoint)(e) }

// lock waits for the mutex of c's endpoint.
func (c *Communicator) lock() *communicator {
	c.ep.mu.Lock()
	return (*communicator)(c)
}

func (c *communicator) unlock() { c.ep.unlock() }

// lock waits for the mutex of op's endpoint.
func (op *Op) lock() *operation {
	op.comm.ep.mu.Lock()
	return (*operation)(op)
}

func (op *operation) unlock() { op.comm.ep.unlock() }
