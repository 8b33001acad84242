package elastic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMain(m *testing.M) {
	if args := strings.Fields(os.Getenv(benchWorker)); len(args) > 0 {
		if err := runBenchWorker(context.Background(), args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	runtime.GOMAXPROCS(8) // also where there are fewer processors, a commit is to come from several ranks
	goleak.VerifyTestMain(testkit.OwnSettings(m))
}

// errKilled ends a rank of a testJob as a kill does: it is started again, with nothing of what it had.
var errKilled = errors.New("killed")

// A testJob plays gorun --on-failure=replace for ranks that are goroutines.
type testJob struct {
	t         testing.TB
	transport string

	mu    sync.Mutex
	round *testRound
	end   sync.Once
	ranks sync.WaitGroup
	errs  map[int]error // of ranks that have ended for good
	ended chan struct{} // closed when one has ended with an error
	alive map[int]*testRank
}

// errJobEnded is what a rank that rejoins gets when another one has ended with an error of its own.
var errJobEnded = errors.New("the job has ended")

// A testRound is one membership.
type testRound struct {
	number uint64
	size   int
	store  comm.Store
	over   chan struct{}
}

func (j *testJob) newRound(number uint64, size int) *testRound {
	return &testRound{number, size, comm.NewMemStore(), make(chan struct{})}
}

// runJob runs program as each rank of a job, once more for each rank that is killed, and returns the errors of the ranks. A program makes a State and
// passes it to run.
func runJob(t testing.TB, transport string, size int, program func(run runFunc) error) []error {
	return newTestJob(t, transport, size).run(func(_ *testRank, run runFunc) error { return program(run) })
}

func newTestJob(t testing.TB, transport string, size int) *testJob {
	testkit.Once(t)
	j := &testJob{t: t, transport: transport, errs: make(map[int]error), ended: make(chan struct{}), alive: make(map[int]*testRank)}
	j.round = j.newRound(1, size)
	return j
}

func (j *testJob) run(program func(p *testRank, run runFunc) error) []error {
	first := j.round
	for r := range first.size {
		j.start(r, first, program)
	}
	j.ranks.Wait()
	errs := make([]error, first.size)
	for r := range errs {
		errs[r] = j.errs[r]
	}
	return errs
}

// A runFunc is Run, in a testJob.
type runFunc func(s *State, f func(ctx context.Context, world *comm.Group) error) error

func (j *testJob) start(rank int, round *testRound, program func(p *testRank, run runFunc) error) {
	j.ranks.Go(func() {
		p := &testRank{job: j, rank: rank, round: round}
		j.mu.Lock()
		j.alive[rank] = p
		j.mu.Unlock()
		err := program(p, func(s *State, f func(ctx context.Context, world *comm.Group) error) error {
			return runner{init: p.init, rejoin: p.rejoin, round: func() uint64 { return p.round.number }, run: 1}.do(j.t.Context(), s, p.program(f))
		})
		if errors.Is(err, errKilled) || err != nil && p.isKilled() {
			j.start(rank, j.over(p.round), program)
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.errs[rank] = err; err != nil {
			j.end.Do(func() { close(j.ended) })
		}
	})
}

// over ends a round, if it is the present one, and returns the next.
func (j *testJob) over(r *testRound) *testRound {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.round == r {
		j.round = j.newRound(r.number+1, r.size)
		close(r.over)
	}
	return j.round
}

// A testRank is one life of a rank.
type testRank struct {
	job   *testJob
	rank  int
	round *testRound

	log testkit.Log // of its worlds

	mu       sync.Mutex
	world    *comm.Group
	killed   bool
	returned bool // from what it runs in this world
}

// program is f, which a rank runs in each world. A rank that has returned from it is not killed: others may know that all have returned, and end.
func (p *testRank) program(f func(ctx context.Context, world *comm.Group) error) func(ctx context.Context, world *comm.Group) error {
	setReturned := func(returned bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.returned = returned
	}
	return func(ctx context.Context, world *comm.Group) error {
		setReturned(false)
		err := f(ctx, world)
		setReturned(err == nil)
		return err
	}
}

// aMinute is much longer than the ranks of a round take to learn that it is over.
const aMinute = time.Minute

// kill ends a rank at any time before it has returned: all its calls fail, and those of the others that need it.
func (p *testRank) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.returned {
		p.killed = true
		p.world.Abort(errKilled)
	}
}

func (p *testRank) isKilled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

func (p *testRank) init(ctx context.Context) (*comm.Group, error) {
	during, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := p.round.over
	go func() {
		select {
		case <-over:
			cancel(comm.ErrRoundOver)
		case <-p.job.ended:
			cancel(errJobEnded)
		case <-during.Done():
		}
	}()
	world, err := comm.Init(during, comm.WithStore(p.round.store), comm.WithRank(p.rank, p.round.size), comm.WithTransport(comm.Transport(p.job.transport)),
		comm.WithTimeout(time.Minute), comm.WithLogger(p.log.Logger()))
	if err != nil && errors.Is(context.Cause(during), comm.ErrRoundOver) {
		err = fmt.Errorf("%w: %w", comm.ErrRoundOver, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.world = world; p.killed {
		return nil, errors.Join(errKilled, world.Close())
	}
	return world, err
}

func (p *testRank) rejoin(ctx context.Context) (*comm.Group, error) {
	if p.isKilled() {
		return nil, errKilled
	}
	_ = p.world.Close()
	select {
	case <-p.round.over:
	case <-p.job.ended:
		return nil, errJobEnded
	case <-time.After(aMinute):
		return nil, fmt.Errorf("rank %d rejoins, and no rank of round %d has been killed: %s", p.rank, p.round.number, &p.log)
	}
	p.job.mu.Lock()
	p.round = p.job.round
	p.job.mu.Unlock()
	return p.init(ctx)
}

// waitForCalls returns a function that returns when it has been called n times. The function of Run calls it before a rank leaves. Otherwise Run on a
// slow rank may see the other one leave, and never call the function.
func waitForCalls(n int) func() {
	var calls atomic.Int64
	all := make(chan struct{})
	return func() {
		if calls.Add(1) == int64(n) {
			close(all)
		}
		<-all
	}
}
