// Package filestore keeps a [store.Store] in a directory that processes share, on one machine or on a file system with
// locks between machines. It is c10d's FileStore, but safe when a process is killed while it writes.
//
// Each key is a file, whose name is the key's hash. To write one, a process holds the lock of the file "write", and
// renames a temporary file. To read one, it takes no lock. Whoever has opened the store holds a shared lock of the file
// "used": the first and the last one can have it exclusively, and remove all keys. They hold the lock of the file
// "open" meanwhile, so that one who finds the store in use knows that its keys are not of an earlier run. A call that
// waits for a key looks for its file again and again, since file systems of several machines announce nothing.
//
// # Layout
//
//	filestore.go   Store: the calls of a store
//	dir.go         its directory: opening and closing it, its files and locks
package filestore
