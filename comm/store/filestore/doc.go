// Package filestore keeps a [store.Store] in a file that processes share, on one machine or on a file system with locks
// between machines. It is c10d's FileStore, but safe when a process is killed while it writes. It needs Linux.
//
// Every write is appended to the file as a record. A handle reads the records of the others under a lock, and watches the
// file while a call waits.
//
// # Layout
//
//	filestore.go   Store: the calls of a store
//	log.go         the file as a log of records
//	lock.go        opening and closing it, and its locks
//	watch.go       when the file may have changed
//	open.go        opening a file where other users cannot replace it: which owners and modes are safe
//	other.go       systems other than Linux
package filestore
