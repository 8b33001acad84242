package hier

import "github.com/gorun/gorun/comm/internal/pipeline"

// An exchanger carries out the tasks of a call between nodes, in order. After the first error it carries out no more.
// It may do so in a goroutine of its own. Then only that goroutine uses err and the call's Pipeline.
type exchanger struct {
	call    *Call
	isAsync bool
	err     error // of a task

	// If it is asynchronous:
	serveAll func() // serve: a method that is bound anew for each goroutine would be allocated
	tasks    chan exchange
	ended    chan error
	pending  int // tasks that have started, and have not been awaited
}

// An exchange is a task, or says that no more tasks come.
type exchange struct {
	pipeline.Task
	isLast bool
}

// mostPending is the most tasks that are pending.
const mostPending = 2

// exchange begins the exchanges of c.
func (c *Call) exchange(isAsync bool) *exchanger {
	if c.exchanger == nil {
		c.exchanger = &exchanger{tasks: make(chan exchange, mostPending), ended: make(chan error, mostPending)}
		c.exchanger.serveAll = c.exchanger.serve
	}
	x := c.exchanger
	x.call, x.isAsync, x.err = c, isAsync, nil
	if isAsync {
		c.Caller.Remaining() // the deadline is set now, so that both goroutines only read it
		go x.serveAll()
	}
	return x
}

func (x *exchanger) serve() {
	for t := <-x.tasks; !t.isLast; t = <-x.tasks {
		x.run(&t.Task)
		x.ended <- x.err
	}
	x.ended <- x.err
}

func (x *exchanger) run(t *pipeline.Task) {
	if len(t.Plan) > 0 && x.err == nil {
		x.err = x.call.Pipeline.Run(x.call.Call, t)
	}
}

func (x *exchanger) start(t pipeline.Task) {
	if !x.isAsync {
		x.run(&t)
		return
	}
	x.pending++
	x.tasks <- exchange{Task: t}
}

// await waits for the oldest task that is pending. It returns the first error so far.
func (x *exchanger) await() error {
	if !x.isAsync {
		return x.err
	}
	x.pending--
	return <-x.ended
}

// end waits for all tasks, and for the goroutine. It returns the first error.
func (x *exchanger) end() error {
	if !x.isAsync {
		return x.err
	}
	for x.pending > 0 {
		_ = x.await() // the goroutine returns it again
	}
	x.tasks <- exchange{isLast: true}
	return <-x.ended
}
