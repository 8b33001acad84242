package elastic

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gorun/gorun/comm"
)

const benchBytes = 1 << 30

// The benchmarks move 1 GiB to one rank, from one or three others: as a State, by Send and Recv, and by Broadcast. They print figures and judge none.

func BenchmarkSync(b *testing.B) {
	for _, transport := range []string{"shm", "tcp"} {
		for _, holders := range []int{1, 3} {
			b.Run(fmt.Sprintf("%s/%d", transport, holders), func(b *testing.B) {
				inBench(b, transport, holders+1, func(ctx context.Context, world *comm.Group) func() error {
					large := make([]float32, benchBytes/4)
					s, err := NewState(Slice("large", large))
					if err == nil {
						err = errors.Join(s.begin(), s.take())
					}
					if err != nil {
						b.Error(err)
						return func() error { return err }
					}
					return func() error {
						s.last = commitID{}
						if world.Rank() < holders { // it has gone back to its commit, as in Run, before the ranks meet
							s.last = commitID{1, 1}
							s.beginRollback()
							s.rollback.mayProceed(true)
							<-s.rollback.done
						}
						return s.sync(ctx, world, 1, layoutOf(1, s.items))
					}
				})
			})
		}
	}
}

func BenchmarkSendRecv(b *testing.B) {
	for _, transport := range []string{"shm", "tcp"} {
		b.Run(transport, func(b *testing.B) {
			inBench(b, transport, 2, func(ctx context.Context, world *comm.Group) func() error {
				buf := make([]float32, benchBytes/4)
				return func() error {
					if world.Rank() == 0 {
						return comm.Send(ctx, world, buf, 1)
					}
					_, err := comm.Recv(ctx, world, buf, 0)
					return err
				}
			})
		})
	}
}

func BenchmarkBroadcast(b *testing.B) {
	for _, transport := range []string{"shm", "tcp"} {
		b.Run(transport, func(b *testing.B) {
			inBench(b, transport, 2, func(ctx context.Context, world *comm.Group) func() error {
				buf := make([]float32, benchBytes/4)
				return func() error { return comm.Broadcast(ctx, world, buf, 0) }
			})
		})
	}
}

// inBench measures what prepare returns on all ranks, after one call to begin with, and with a barrier after each.
func inBench(b *testing.B, transport string, size int, prepare func(ctx context.Context, world *comm.Group) func() error) {
	for _, err := range inWorld(b, transport, size, func(ctx context.Context, world *comm.Group) error {
		f := prepare(ctx, world)
		once := func() error {
			if err := f(); err != nil {
				return err
			}
			return comm.Barrier(ctx, world)
		}
		if err := once(); err != nil {
			return err
		}
		if world.Rank() == 0 {
			b.SetBytes(benchBytes)
			b.ResetTimer()
		}
		if err := comm.Barrier(ctx, world); err != nil {
			return err
		}
		for range b.N {
			if err := once(); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			b.Error(err)
		}
	}
}
