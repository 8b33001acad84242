package drill

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/gorun/gorun/comm"
)

// The pause between two computations, and between two messages about them.
const (
	computePause = 5 * time.Millisecond
	reportPause  = 50 * time.Millisecond
)

// lengths are the numbers of elements that workers add up in turn.
var lengths = []int{2, 1000, 40_000}

// numbers returns a rank's input in a turn: 0, followed by numbers that differ from those in neighbouring places, turns and ranks.
func numbers(turn, rank int) []int {
	list := make([]int, lengths[turn%len(lengths)])
	for i := 1; i < len(list); i++ {
		list[i] = turn + rank + i
	}
	return list
}

// checkSum checks that sum is the sum of the numbers of all ranks.
func checkSum(turn, size int, sum []int) error {
	for i, got := range sum {
		if want := size*(turn+i) + size*(size-1)/2; i > 0 && got != want {
			return fmt.Errorf("element %d of turn %d is %d, want %d", i, turn, got, want)
		}
	}
	return nil
}

// compute computes until one worker is asked to finish. Then it ends successfully in all workers after the same turn. If rejoin is set, it
// outlives the failure of others. Its state is the number of turns.
func (d *drillConn) compute(ctx context.Context, rejoin bool) error {
	turn := 0
	world, err := comm.Init(ctx)
	for {
		if err == nil {
			err = d.computeIn(ctx, world, &turn)
		}
		if err == nil {
			return nil
		}
		again := rejoin && isOver(err)
		if sendErr := d.send(message{Kind: stuck, Error: err.Error(), Death: deathIn(err)}); sendErr != nil || !again {
			return errors.Join(err, sendErr)
		}
		if world, err = comm.Rejoin(ctx); err != nil {
			continue
		}
		p, placeErr := d.place()
		if placeErr != nil {
			return placeErr
		}
		if err := d.send(message{Kind: rejoined, Place: p}); err != nil {
			return err
		}
	}
}

// isOver reports whether an error only means that another round follows.
func isOver(err error) bool {
	_, died := errors.AsType[*comm.PeerError](err)
	return died || errors.Is(err, comm.ErrRoundOver)
}

// deathIn returns the death because of which an operation failed; nil: the error names none.
func deathIn(err error) *death {
	if peer, ok := errors.AsType[*comm.PeerError](err); ok && peer.Death != nil {
		return &death{peer.Rank, peer.Death.ExitCode, peer.Death.OutOfMemory}
	}
	return nil
}

// computeIn computes in one world, whose ranks begin with the turn of the rank that has come furthest.
func (d *drillConn) computeIn(ctx context.Context, world *comm.Group, turn *int) error {
	furthest := []int{*turn}
	if err := comm.AllReduce(ctx, world, furthest, comm.Max); err != nil {
		return err
	}
	if furthest[0] < *turn {
		return d.wrong(fmt.Errorf("the most of all turns is %d, and %d are done here", furthest[0], *turn))
	}
	last := time.Time{}
	for *turn = furthest[0]; ; {
		time.Sleep(computePause)
		for d.loop.Load() { // until gorun ends it
			runtime.Gosched()
		}
		if d.logs {
			_, _ = fmt.Println(logLine)
		}
		sum := numbers(*turn, world.Rank())
		if d.finish.Load() {
			sum[0] = 1
		}
		if err := comm.AllReduce(ctx, world, sum, comm.Sum); err != nil {
			return err
		}
		if err := checkSum(*turn, world.Size(), sum); err != nil {
			return d.wrong(err)
		}
		*turn++
		if sum[0] > 0 {
			return world.Close()
		}
		if time.Since(last) > reportPause {
			last = time.Now()
			if err := d.send(message{Kind: computed, State: *turn, Goroutines: runtime.NumGoroutine()}); err != nil {
				return err
			}
		}
	}
}

func (d *drillConn) wrong(err error) error {
	return errors.Join(err, d.send(message{Kind: wrong, Error: err.Error()}))
}
