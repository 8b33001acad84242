// Package store is what a rendezvous needs of a place where all nodes of a job meet: keys with values, leases, and transactions.
//
// [Store] is five calls. Package etcdstore has them over etcd, and storetest in memory, for tests. To add another, write the five, and
// run the conformance suite of storetest with it.
package store

import (
	"context"
	"errors"
	"time"
)

// A Store keeps values by keys. Each transaction that writes has a revision of its own, which is higher than all before
// it. Several goroutines may use a Store.
//
// A call that fails may have been carried out all the same, and any call may be carried out twice.
type Store interface {
	// Read answers queries at one revision.
	Read(ctx context.Context, queries ...Query) (Answer, error)

	// Commit does all of a transaction, if its conditions hold, or nothing.
	Commit(ctx context.Context, t Txn) (Answer, error)

	// Keep grants a lease for ttl if id is 0. Otherwise it renews lease id for the time for which it was granted or,
	// if ttl is 0, only asks. It returns the lease, and how long that lasts: perhaps not ttl, since a store may count
	// in seconds. It fails with ErrNoLease if there is no such lease.
	Keep(ctx context.Context, id Lease, ttl time.Duration) (Lease, time.Duration, error)

	// Watch calls changed with changes of keys, in their order, until ctx ends. It calls changed without events when it
	// begins, and when some may have been lost.
	Watch(ctx context.Context, keys Range, changed func([]Event))

	// Close ends the use of the store, not the store.
	Close() error
}

// ErrNoLease says that a lease has ended, or was never granted.
var ErrNoLease = errors.New("there is no such lease")

// A RefusedError means that the store has refused a call, and would refuse it again.
type RefusedError struct{ Err error }

// Error is one line.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// A Lease is a number by which the store knows a lease; 0: none. What is written under a lease is deleted when that ends.
type Lease int64

// A KV is a key and its value. The zero value is that of a key that is not there.
type KV struct {
	Key, Value string
	Created    int64 // the revision at which it was written and had not been there
	Written    int64 // the revision at which it was written last
	Lease      Lease
}

// An Event is a change of a key. If it was deleted, KV has only the key, and the revision at which it was deleted, in Written.
type Event struct {
	KV
	Deleted bool
}

// A Range is the keys from First up to End; without End, it is First alone.
type Range struct{ First, End string }

// Key is the range of one key.
func Key(key string) Range { return Range{First: key} }

// Below is the range of the keys that begin with prefix, whose last byte is less than 255.
func Below(prefix string) Range {
	last := len(prefix) - 1
	return Range{prefix, prefix[:last] + string([]byte{prefix[last] + 1})}
}

// Has reports whether key is in r.
func (r Range) Has(key string) bool { return key == r.First || key > r.First && key < r.End }

// A Query asks for keys, which are found in their order.
type Query struct {
	Range
	Since    int64 // leaves out what was written before that revision
	Limit    int   // how many to find at most; 0: all
	OnlyKeys bool  // leaves out values and leases
}

// Found is the answer to a Query.
type Found struct {
	KVs   []KV
	Count int // how many keys the range has, also those that Since and Limit leave out
}

// Only returns what was found by a query for one key; zero: there is no such key.
func (f Found) Only() (kv KV) {
	if len(f.KVs) > 0 {
		kv = f.KVs[0]
	}
	return kv
}

// A Txn is a transaction. No key may be written twice in it, nor written and deleted.
type Txn struct {
	When    []Cond // all of which must hold
	Deletes []Range
	Puts    []Put
	Else    []Query // are answered if they do not hold

	// End is a lease that ends when the rest is done; 0: none. It is no error if it has ended already. If Commit fails,
	// it may go on.
	End Lease
}

// A Put writes a value under a lease; 0: none.
type Put struct {
	Key, Value string
	Lease      Lease
}

// A Cond is a condition about each key of a range. If the range has no key, it is about a key that is not there.
type Cond struct {
	Range
	Kind  CondKind
	Value int64
}

// A CondKind is a kind of condition.
type CondKind int

// The kinds of conditions: the key ...
const (
	IsWritten CondKind = iota // was written last at the revision Value; 0: is not there
	IsLeased                  // is under the lease Value
	Exists                    // is there, whatever Value is
)

// An Answer is what a call has found.
type Answer struct {
	Rev   int64   // of the store then; of a transaction that writes, its own
	Done  bool    // the conditions held
	Found []Found // one for each query
}
