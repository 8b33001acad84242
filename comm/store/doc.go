// Package store defines the small key-value store in which the ranks of a job find each other, as c10d's Store does for
// torch.distributed.
//
// Package comm makes stores: comm.NewMemStore, comm.NewFileStore, and comm.ListenStore with comm.NewTCPStore. [NewPrefix] makes a
// view of another store (c10d's PrefixStore).
//
// # Writing a store
//
// A store of your own implements [Store]. The functions of this package other than [NewPrefix] help it to check its
// arguments, to compute what Add and CompareAndSwap do, and to name a failed call.
//
// # Layout
//
//	store.go    Store, its limits and its errors, and what all implementations have in common
//	prefix.go   NewPrefix
package store
