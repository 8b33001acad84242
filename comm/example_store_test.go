package comm_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/gorun/gorun/comm"
)

// greet sets a key of a store, and waits for it, as another process would.
func greet(ctx context.Context, s comm.Store) {
	if err := s.Set(ctx, "greeting", []byte("hello")); err != nil {
		fmt.Println(err)
		return
	}
	value, err := s.Get(ctx, "greeting")
	fmt.Println(string(value), err)
}

func ExampleListenStore() {
	token := []byte("known to the server and its clients")
	server, err := comm.ListenStore("localhost:0", token, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client, err := comm.NewTCPStore(context.Background(), server.Addr(), token) // in other processes
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	greet(context.Background(), client)
	// Output: hello <nil>
}

// A listener of the caller's own: one that systemd has opened, or on a port that is held until then.
func ExampleServeStore() {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := comm.ServeStore(listener, []byte("secret"), nil)
	defer server.Close()
	fmt.Println(server.Addr() == listener.Addr().String())
	// Output: true
}

func ExampleNewTCPStore() {
	server, err := comm.ListenStore("localhost:0", []byte("one secret"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	_, err = comm.NewTCPStore(context.Background(), server.Addr(), []byte("another secret"))
	fmt.Println(err != nil, comm.ExitCode(err)) // at once: trying again would not help
	// Output: true 2
}

func ExampleNewFileStore() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s, err := comm.NewFileStore(filepath.Join(dir, "store")) // on a file system that all processes see
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	greet(context.Background(), s)
	// Output: hello <nil>
}

func ExampleNewMemStore() {
	ctx, s := context.Background(), comm.NewMemStore()
	defer s.Close()
	for range 3 {
		if _, err := s.Add(ctx, "arrivals", 1); err != nil {
			fmt.Println(err)
			return
		}
	}
	n, err := s.Add(ctx, "arrivals", 0)
	fmt.Println(n, err)
	// Output: 3 <nil>
}

// Two jobs in one store do not see each other's keys.
func ExampleNewPrefixStore() {
	ctx, s := context.Background(), comm.NewMemStore()
	defer s.Close()
	one, two := comm.NewPrefixStore(s, "job1/"), comm.NewPrefixStore(s, "job2/")
	greet(ctx, one)
	existed, err := two.Delete(ctx, "greeting")
	fmt.Println(existed, err)
	// Output:
	// hello <nil>
	// false <nil>
}
