package comm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gorun/gorun/comm"
)

func ExampleStore() {
	ctx := context.Background()
	var store comm.Store = comm.NewMemStore()
	defer store.Close()

	fmt.Println(store.Set(ctx, "model", []byte("resnet")))
	value, err := store.Get(ctx, "model")
	fmt.Println(string(value), err)
	for range 3 {
		n, err := store.Add(ctx, "ready", 1)
		fmt.Println(n, err)
	}
	leader, err := store.CompareAndSwap(ctx, "leader", nil, []byte("rank 2")) // if nobody is
	fmt.Println(string(leader), err)
	existed, err := store.Delete(ctx, "model")
	fmt.Println(existed, err)

	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	fmt.Println(store.Wait(ctx, "leader", "checkpoint"))
	// Output:
	// <nil>
	// resnet <nil>
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
	// rank 2 <nil>
	// true <nil>
	// store: nobody has set "checkpoint": context deadline exceeded
}

func ExampleListenStore() {
	token := []byte("a secret of the job")
	server, err := comm.ListenStore("127.0.0.1:0", token, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	ctx := context.Background()
	store, err := comm.NewTCPStore(ctx, server.Addr(), token)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	fmt.Println(store.Set(ctx, "key", []byte("value")))
	// Output: <nil>
}

func ExampleNewFileStore() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	store, err := comm.NewFileStore(filepath.Join(dir, "store")) // on a file system that all ranks share
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	fmt.Println(store.Add(context.Background(), "ready", 1))
	// Output: 1 <nil>
}

func ExampleNewPrefixStore() {
	ctx := context.Background()
	store := comm.NewMemStore()
	defer store.Close()
	train, eval := comm.NewPrefixStore(store, "train/"), comm.NewPrefixStore(store, "eval/")
	if err := errors.Join(train.Set(ctx, "step", []byte("7")), eval.Set(ctx, "step", []byte("1"))); err != nil {
		fmt.Println(err)
	}
	step, err := store.Get(ctx, "train/step")
	fmt.Println(string(step), err)
	// Output: 7 <nil>
}
