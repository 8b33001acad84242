// Package wait is how ranks that share memory wait for each other: they spin, then yield, then park. A rank waits for the clock of
// another one, which is in shared memory and which that rank alone advances. See [Waiter].
package wait
