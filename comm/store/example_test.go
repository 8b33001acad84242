package store_test

import (
	"context"
	"fmt"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/store"
)

// Two jobs in one store do not see each other's keys.
func ExampleNewPrefix() {
	ctx, s := context.Background(), comm.NewMemStore()
	defer s.Close()
	one, two := store.NewPrefix(s, "job1/"), store.NewPrefix(s, "job2/")
	if err := one.Set(ctx, "leader", []byte("node7")); err != nil {
		fmt.Println(err)
		return
	}
	leader, err := two.CompareAndSwap(ctx, "leader", nil, []byte("node3"))
	fmt.Println(string(leader), err)
	// Output: node3 <nil>
}
