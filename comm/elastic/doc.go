// Package elastic keeps the state of a training job, or of any other iterative program, through changes of the job's ranks: when a rank
// dies and gorun --on-failure=replace starts it again, when nodes come, and when nodes go.
//
//	step, weights := 0, make([]float32, n)
//	state, err := elastic.NewState(elastic.Value("step", &step), elastic.Slice("weights", weights))
//	if err != nil {
//		return err
//	}
//	return elastic.Run(ctx, state, func(ctx context.Context, world *comm.Group) error {
//		for step < 1000 {
//			if err := train(ctx, world, weights); err != nil {
//				return err
//			}
//			step++ // before the commit, which has done this step
//			if err := state.Commit(); err != nil {
//				return err
//			}
//		}
//		return nil
//	})
//
// A [State] is a set of variables that have the same contents on all ranks. [State.Commit] takes a copy of them in memory. [Run] calls the
// function, and calls it again in the new world after every change. Before each call it sets the variables of all ranks to the newest
// commit. Ranks that do not have it receive it from those that do, over package comm.
//
// # Which commit
//
// Commit is local and sends nothing, so a death can leave some ranks one commit ahead of others. Run takes the newest commit that any rank
// of the new world has. That is right because the variables have the same contents on all ranks: a commit of one rank is a commit of all,
// and some rank only had no time to take it. So a commit is lost only if all ranks that have taken it are lost at once.
//
// Commits are ordered by the round of gorun in which the rank last began, and then by number. When a world has agreed on a commit, all its
// ranks record it as a commit of this round. So if a rank was cut off, and has made a commit that the others never saw, this commit is older
// than what the others have done since. Commits of the same round and number have the same contents on all ranks.
//
// That last point depends on the program, so Run checks it: if several ranks have the newest commit, they compare checksums of every
// variable. If these differ, Run returns an error on all ranks that names the variable and two ranks. There are three common reasons: a
// variable differs between ranks (a rank number, a time, a random number), another goroutine changes the variables during Commit, or ranks
// call Commit at different points of the program.
//
// # Memory and time
//
// A State takes as much memory again as its slices have. Commit costs a copy of the slices, and Run's checks about as much for each change
// of the world. To receive a commit, a rank needs no memory beyond that. A receiver copies each byte three times: out of the transport, to
// the variable, and to its own copy of the commit. Recv does the first of these only. BenchmarkSync compares the two.
package elastic
