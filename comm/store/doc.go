// Package store defines the small key-value store in which the ranks of a job find each other, as c10d's Store does for
// torch.distributed.
//
// The implementations are packages of their own, so that a program links only what it uses:
//
//   - memstore keeps the values in this process, for ranks that are goroutines (c10d's HashStore).
//   - filestore keeps them in a directory that processes share (c10d's FileStore).
//   - tcpstore has a server that keeps them in memory, and its client (c10d's TCPStore).
//   - [NewPrefix] is a view of another store (c10d's PrefixStore).
//
// Package comm has the same stores under the names of c10d, such as comm.NewTCPStore.
//
// # Writing a store
//
// A store of your own implements [Store]. The functions of this package other than [NewPrefix] help it to check its
// arguments, to compute what Add and CompareAndSwap do, and to name a failed call.
//
// # Layout
//
//	store.go        Store, its limits and its errors, and what all implementations have in common
//	prefix.go       NewPrefix
//	internal/kv     the values of a store in memory, and the calls that wait for a key
package store
