package endpoint

// The mutex of an endpoint guards all its state. Each type of the API has another one beside it, with the same fields:
// that is what it is to the goroutine that holds the mutex. Only lock returns one. So a method of state, communicator or
// operation is called with the mutex held, and it cannot call a method of the API, which would wait for the mutex. What
// belongs to a peer, a stall, a monitor or an inbox is reached only from there, too. Package core says in which order
// locks are taken.

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
