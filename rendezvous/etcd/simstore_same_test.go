package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestSimStore: the simulated etcd answers as a real one does.
func TestSimStore(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed()
	random := rand.New(rand.NewPCG(seed, 0))
	simulated := newSimStore(random)
	stores := []store{startServer(t).client(), newDirectClient(simulated)}
	leases := [][]clientv3.LeaseID{nil, nil}
	key := func() string { return fmt.Sprint("/k", random.IntN(3), "/", random.IntN(4)) }
	prefix := func() string { return fmt.Sprint("/k", random.IntN(3), "/") }
	for step := range 600 {
		if random.IntN(10) == 0 || len(leases[0]) == 0 {
			for i, s := range stores {
				granted, err := s.Grant(t.Context(), 1000)
				if err != nil {
					t.Fatal(err)
				}
				leases[i] = append(leases[i], granted.ID)
			}
		}
		if n := random.IntN(len(leases[0])); random.IntN(20) == 0 {
			var errs [2]error
			for i, s := range stores {
				_, errs[i] = s.Revoke(t.Context(), leases[i][n])
			}
			if errors.Is(errs[0], rpctypes.ErrLeaseNotFound) != errors.Is(errs[1], rpctypes.ErrLeaseNotFound) {
				t.Fatalf("seed %d, step %d: %v, and %v", seed, step, errs[0], errs[1])
			}
			continue
		}
		transact := drawTransaction(random, key, prefix, simulated.rev, len(leases[0]))
		var texts [2]string
		for i, s := range stores {
			answer, err := transact(s.Txn(t.Context()), leases[i]).Commit()
			texts[i] = showAnswer(answer, err, leases[i])
		}
		if texts[0] != texts[1] {
			t.Fatalf("seed %d, step %d: etcd answers\n%s\nand the simulated one\n%s", seed, step, texts[0], texts[1])
		}
	}
}

// newDirectClient asks a simulated etcd, which answers at once.
func newDirectClient(s *simStore) *simClient {
	now := func() time.Time { return simBegin }
	return newSimClient(now, func(_ context.Context, _ string, call func(*simStore) (any, error)) (any, error) { return call(s) }, nil)
}

// drawTransaction draws one of those that this package makes, roughly.
func drawTransaction(random *rand.Rand, key, prefix func() string, rev int64, leases int) func(clientv3.Txn, []clientv3.LeaseID) clientv3.Txn {
	var when []clientv3.Cmp
	var whenLease []func([]clientv3.LeaseID) clientv3.Cmp
	past := func() int64 { return max(0, rev-random.Int64N(20)) }
	for range random.IntN(3) {
		sign := []string{"=", "=", "<", ">", "!="}[random.IntN(5)]
		switch random.IntN(5) {
		case 0:
			when = append(when, clientv3.Compare(clientv3.CreateRevision(key()), sign, int64(0)))
		case 1:
			when = append(when, clientv3.Compare(clientv3.CreateRevision(prefix()).WithPrefix(), sign, int64(0)))
		case 2:
			when = append(when, clientv3.Compare(clientv3.ModRevision(key()), sign, past()))
		case 3:
			when = append(when, clientv3.Compare(clientv3.ModRevision(prefix()).WithPrefix(), sign, past()))
		default:
			k, n := key(), random.IntN(leases)
			whenLease = append(whenLease, func(ids []clientv3.LeaseID) clientv3.Cmp {
				return clientv3.Compare(clientv3.LeaseValue(k), "=", ids[n])
			})
		}
	}
	var branches [2][]func([]clientv3.LeaseID) clientv3.Op
	for i := range branches {
		written := make(map[string]bool)
		for range random.IntN(4) {
			var op func([]clientv3.LeaseID) clientv3.Op
			always := func(is clientv3.Op) func([]clientv3.LeaseID) clientv3.Op {
				return func([]clientv3.LeaseID) clientv3.Op { return is }
			}
			switch k, p := key(), prefix(); random.IntN(9) {
			case 0, 1, 2:
				if written[k] || written[k[:4]] {
					continue // etcd takes one change of a key in a transaction
				}
				written[k], written["in "+k[:4]] = true, true
				text, n := fmt.Sprint(random.IntN(100)), random.IntN(leases+1)
				op = func(ids []clientv3.LeaseID) clientv3.Op {
					if n == leases {
						return clientv3.OpPut(k, text)
					}
					return clientv3.OpPut(k, text, clientv3.WithLease(ids[n]))
				}
			case 3:
				if written[k] || written[k[:4]] {
					continue
				}
				written[k], written["in "+k[:4]] = true, true
				op = always(clientv3.OpDelete(k))
			case 4:
				if written[p] || written["in "+p] {
					continue
				}
				written[p] = true
				op = always(clientv3.OpDelete(p, clientv3.WithPrefix()))
			case 5:
				op = always(clientv3.OpGet(k))
			case 6:
				op = always(clientv3.OpGet(p, clientv3.WithPrefix(), clientv3.WithMinModRev(past())))
			case 7:
				op = always(clientv3.OpGet(p, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend)))
			default:
				op = always(clientv3.OpGet(p, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()))
			}
			branches[i] = append(branches[i], op)
		}
	}
	return func(txn clientv3.Txn, ids []clientv3.LeaseID) clientv3.Txn {
		all := append([]clientv3.Cmp(nil), when...)
		for _, f := range whenLease {
			all = append(all, f(ids))
		}
		var ops [2][]clientv3.Op
		for i, branch := range branches {
			for _, f := range branch {
				ops[i] = append(ops[i], f(ids))
			}
		}
		return txn.If(all...).Then(ops[0]...).Else(ops[1]...)
	}
}

// showAnswer is all of an answer that this package goes by.
func showAnswer(answer *clientv3.TxnResponse, err error, leases []clientv3.LeaseID) string {
	if err != nil {
		return fmt.Sprint(errors.Is(err, rpctypes.ErrLeaseNotFound), " ", err)
	}
	number := make(map[int64]int)
	for i, id := range leases {
		number[int64(id)] = i + 1
	}
	var b strings.Builder
	fmt.Fprintln(&b, answer.Succeeded, "at revision", answer.Header.Revision)
	for _, r := range answer.Responses {
		switch r := r.Response.(type) {
		case *pb.ResponseOp_ResponseRange:
			fmt.Fprintln(&b, r.ResponseRange.Count, "keys")
			for _, kv := range r.ResponseRange.Kvs {
				fmt.Fprintf(&b, "  %s = %s, created %d, written %d, version %d, lease %d\n", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version, number[kv.Lease])
			}
		case *pb.ResponseOp_ResponseDeleteRange:
			fmt.Fprintln(&b, "deleted", r.ResponseDeleteRange.Deleted)
		}
	}
	return b.String()
}
