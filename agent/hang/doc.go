// Package hang finds the worker that hangs, and what it was doing (--hang-timeout).
//
// A [Monitor] looks at the progress files of a node's workers (package progress). It counts only time in which it runs itself, so no worker
// seems to hang after the node or the agent has been suspended. When a worker has made no progress for the timeout, the monitor asks all of
// them whom they wait for, and looks where those are that do not say. The pure function suspect decides which one holds up the others: never
// one that waits for another, and, of those that do not say, only one that stands out (oddOneOut). There may be none on this node: the rank
// that holds up the others is on another node, whose agent finds it, or it makes progress.
//
// [Collect] writes what all workers are doing to files, before anybody is killed. It gets stacks from the workers (package comm, Python's
// faulthandler) or from py-spy, and the states of their threads from the kernel. It puts the flight recorders of comm side by side.
package hang
