package tcpstore_test

import (
	"context"
	"fmt"

	"github.com/gorun/gorun/comm/internal/store/tcpstore"
)

func Example() {
	ctx, cfg := context.Background(), tcpstore.Config{Token: []byte("known to the server and its clients")}
	server, err := tcpstore.Listen("localhost:0", cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client, err := tcpstore.Dial(ctx, server.Addr(), cfg) // in other processes
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	n, err := client.Add(ctx, "arrivals", 1)
	fmt.Println(n, err)
	// Output: 1 <nil>
}
