// Command sim-rendezvous makes many nodes meet over one etcd, on this machine. It measures how long they take to form a
// round, to form one without killed nodes, to take these in again, and to restart after failures; how many messages and
// bytes this costs; and whether anything grows with the number of rounds. It prints figures and does not judge them.
//
//	go run ./scripts/sim-rendezvous [-n 100,1000,4000] [-clients N] [-rounds N] [-kill PERCENT] [-expire] [-ttl D]
//	                                [-endpoint HOST:PORT] [-json]
//
// The nodes are real, but have no workers. All nodes share this process, and so does etcd unless there is an endpoint, so
// a machine with few cores shows the work of all nodes together.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

// options are those of all simulations.
type options struct {
	clients  int // connections to etcd; 0: one per node, if there are descriptors for them
	rounds   int
	kill     int // percent
	expire   bool
	ttl      time.Duration
	endpoint string // empty: etcd is started
}

func main() {
	var o options
	sizes := flag.String("n", "100,1000,4000", "numbers of nodes, one simulation each")
	flag.IntVar(&o.clients, "clients", 0, "connections that the nodes share; 0: each has its own, as far as there are descriptors for them")
	flag.IntVar(&o.rounds, "rounds", 200, "rounds that end because a worker has failed")
	flag.IntVar(&o.kill, "kill", 10, "percent of the nodes that are killed")
	flag.BoolVar(&o.expire, "expire", false, "let the leases of killed nodes run out; otherwise they are revoked at once")
	flag.DurationVar(&o.ttl, "ttl", 10*time.Second, "time to live of the leases")
	flag.StringVar(&o.endpoint, "endpoint", "", "host:port of an etcd; empty: one is started")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *sizes, o, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "sim-rendezvous:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, sizes string, o options, asJSON bool) error {
	var all []*result
	for field := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 2 {
			return fmt.Errorf("%q nodes: want numbers of at least 2, with commas between them", field)
		}
		r, err := simulate(ctx, n, o)
		if err != nil {
			return fmt.Errorf("%d nodes: %w", n, err)
		}
		all = append(all, r)
		if !asJSON {
			r.print(os.Stdout)
		}
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	return nil
}
