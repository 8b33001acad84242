// Package hang finds the worker that hangs, and what it was doing (--hang-timeout).
//
// A [Monitor] looks at the progress files of a node's workers (package progress). It counts only time in which it runs itself: if the node,
// or the agent, has been suspended, nobody hangs for it. When a worker has made no progress for the timeout, the monitor asks all of them
// whom they wait for, and [suspect], which is pure, decides which one holds up the others: never one that waits for another. The answer may
// be nobody: then that rank is on another node, whose agent finds it, or makes progress.
//
// [Collect] writes what all workers are doing to files, before anybody is killed: the stacks that they tell (package comm, Python's
// faulthandler), those that py-spy reads, and what the kernel says of their threads; and the flight recorders of comm, side by side.
package hang
