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
// A [State] is a set of variables. Values and Slices have the same contents on all ranks. [State.Commit] takes a copy of them in memory. [Run]
// calls the function, and calls it again in the new world after every change. Before each call it sets the variables of all ranks to the newest
// commit. Ranks that do not have it receive it from those that do, over package comm.
//
// # Which commit
//
// Without Parts, Commit is local and sends nothing, so a death can leave some ranks one commit ahead of others. Run takes the newest commit that
// any rank of the new world has. That is right because the variables have the same contents on all ranks: a commit of one rank is a commit of
// all, and some rank only had no time to take it. So a commit is lost only if all ranks that have taken it are lost at once.
//
// Commits are ordered by the last round that has begun with them, or in which they were made, and then by number. So if a rank was cut off, and
// has made a commit that the others never saw, this commit is older than what the others have gone on with. Commits of the same round and
// number have the same contents on all ranks.
//
// That last point depends on the program, so Run checks it: if several ranks have the newest commit, they compare checksums of every
// variable. If these differ, Run returns an error on all ranks that names the variable and two ranks. There are three common reasons: a
// variable differs between ranks (a rank number, a time, a random number), another goroutine changes the variables during Commit, or ranks
// call Commit at different points of the program.
//
// # Parts
//
// A [Part] belongs to one rank. After each commit its contents are sent to another rank, its partner, on another node if there is one. The
// partners of all ranks have got them before the next Commit copies anything. Until then the commit before counts as well: all ranks keep two.
// Run takes the newest commit of which some rank has each Part, and some rank the rest, so nobody goes on with Parts of two commits.
//
// # Memory and time
//
// A State takes as much memory again as its slices have. With Parts in the job, it takes two copies, of its own slices and Parts and of the Parts
// of another rank. Commit costs a copy of the slices, and Run's checks about as much for each change of the world. A rank that receives a commit
// copies each byte twice: out of the transport to its copy, and from there to the variable. BenchmarkSync compares that with Recv, and
// BenchmarkCommit the time until Parts have arrived with that of sending as much both ways.
package elastic
