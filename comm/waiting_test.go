package comm

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// Who waits in Init says after a second for whom: the first rank, for all who have come; the others leave it to that
// one.
func TestInitSaysForWhomItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemStore()
		defer store.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		var said [5]testkit.Log
		var wg sync.WaitGroup
		for _, rank := range []int{0, 2} {
			wg.Go(func() {
				_, err := Init(ctx, WithStore(store), WithRank(rank, 5), WithTransport("tcp"), WithToken(""), WithLogger(said[rank].Logger()))
				if missing := new(MissingRanksError); !errors.As(err, &missing) {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
		}
		time.Sleep(time.Second - time.Millisecond)
		synctest.Wait()
		if got := said[0].String() + said[2].String(); got != "" {
			t.Errorf("within a second they say %q", got)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		for _, rank := range []int{0, 2} { // of different nodes, as far as they know
			if got, want := said[rank].String(), `msg="comm: Init waits for ranks 1, 3, 4: 2 of 5 ranks have come to the store given" since=1s`; !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
				t.Errorf("rank %d says %q, want %s", rank, got, want)
			}
		}
		wg.Wait()
		if n := strings.Count(said[0].String(), "\n"); n != 6 { // after 1, 3, 7, 15, 31 and 63 seconds
			t.Errorf("in 100 seconds it says %d lines: %s", n, said[0].String())
		}
	})
}

// A master that does not answer, and a name that means nothing, are told after a second.
func TestInitSaysThatTheMasterIsNotThere(t *testing.T) {
	testkit.Once(t)
	t.Parallel()
	host, port, err := net.SplitHostPort(testkit.ReservedAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"tcp://" + net.JoinHostPort(host, port): "comm: Init waits for rank 0, which serves the store at " + net.JoinHostPort(host, port) + ": connection refused",
		"tcp://no-such-host.invalid:1":          "comm: Init waits for rank 0, which serves the store at no-such-host.invalid:1: ",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var said testkit.Log
		done := make(chan error)
		go func() {
			_, err := Init(ctx, WithInitMethod(url), WithRank(1, 2), WithToken("a secret of 16 bytes and more"), WithLogger(said.Logger()))
			done <- err
		}()
		for deadline := time.Now().Add(time.Minute); !strings.Contains(said.String(), want) && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		cancel()
		if err := <-done; err == nil || !strings.Contains(said.String(), want) {
			t.Errorf("%s: it ends with %v and says %q, want %s", url, err, said.String(), want)
		}
	}
}
