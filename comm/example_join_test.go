package comm_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gorun/gorun/comm"
)

// A worker of gorun, or of torchrun, takes its place from the environment. Here it is a world of one.
func ExampleInit() {
	defer setenv("RANK", "0", "WORLD_SIZE", "1", "MASTER_ADDR", "localhost", "MASTER_PORT", "29500")()
	world, err := comm.Init(context.Background())
	if err != nil {
		fmt.Println(err) // and end with comm.ExitCode(err)
		return
	}
	defer world.Close()
	fmt.Printf("rank %d of %d\n", world.Rank(), world.Size())
	// Output: rank 0 of 1
}

// setenv sets variables of the environment, and returns what takes them back.
func setenv(pairs ...string) func() {
	for pair := range slices.Chunk(pairs, 2) {
		os.Setenv(pair[0], pair[1])
	}
	return func() {
		for pair := range slices.Chunk(pairs, 2) {
			os.Unsetenv(pair[0])
		}
	}
}

// Outside gorun, ranks are told who they are, and meet where the method says: here in a directory that both see.
// Whoever has the token gets in, and what leaves the machine is encrypted with keys made of it.
func ExampleWithInitMethod() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	var ranks sync.WaitGroup
	for rank := range 2 {
		ranks.Go(func() {
			world, err := comm.Init(context.Background(),
				comm.WithInitMethod("file://"+filepath.Join(dir, "meet")),
				comm.WithRank(rank, 2),
				comm.WithToken("known to both ranks only"), // better from a file, or in GORUN_TOKEN
				comm.WithTLS(),
				comm.WithTransport(comm.TransportTCP),
				comm.WithConnections(4), // to each rank, as for a cloud that limits each
			)
			if err != nil {
				fmt.Println(err)
				return
			}
			defer world.Close()
			sum := []int{rank + 1}
			if err := comm.AllReduce(context.Background(), world, sum, comm.Sum); err != nil {
				fmt.Println(err)
			}
			if rank == 0 {
				fmt.Println("sum:", sum[0])
			}
		})
	}
	ranks.Wait()
	// Output: sum: 3
}

// Ranks that do not come are named, and the log has what else there is to say.
func ExampleWithTimeout() {
	_, err := comm.Init(context.Background(),
		comm.WithStore(comm.NewMemStore()),
		comm.WithRank(0, 2),
		comm.WithTimeout(time.Second),
		comm.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
		comm.WithAddress(netip.MustParsePrefix("127.0.0.0/8")), // or an address, or comm.Interface("eth1")
		comm.WithPoll(func() error { return nil }),             // a program in another language looks for signals here
		comm.WithBinding(comm.BindCall),                        // it has threads of its own
		comm.WithBufferCheck(),                                 // its pointers may be wrong
		comm.WithFlightOnQuit(false),                           // this program does something else on SIGQUIT
	)
	if missing, ok := errors.AsType[*comm.MissingRanksError](err); ok {
		fmt.Println("missing:", missing.Missing)
	}
	// Output: missing: [1]
}

// An encoded object of more than the limit is an error, and nothing else: the group goes on.
func ExampleWithObjectLimit() {
	world, err := comm.Init(context.Background(), comm.WithStore(comm.NewMemStore()), comm.WithRank(0, 1), comm.WithObjectLimit(16))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer world.Close()
	_, err = comm.AllGatherObject(context.Background(), world, "more than sixteen bytes")
	object, ok := errors.AsType[*comm.ObjectError](err)
	fmt.Println(ok && object.Rank == world.Rank(), world.Size())
	// Output: true 1
}

// The exit code tells gorun, and whoever started it, whether another attempt may help.
func ExampleExitCode() {
	for _, err := range []error{
		nil,
		errors.New("disk full"),
		&comm.PeerError{Rank: 3, Op: "AllReduce", Seq: 7, Err: comm.ErrTimeout},
		&comm.ArgumentError{Op: "AllGather", Err: errors.New("len(out) is 5: want 6")},
	} {
		fmt.Println(comm.ExitCode(err), err)
	}
	// Output:
	// 0 <nil>
	// 1 disk full
	// 1 comm: AllReduce #7: rank 3: timed out
	// 2 comm: AllGather: len(out) is 5: want 6
}
