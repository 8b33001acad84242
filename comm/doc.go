// Package comm lets the ranks of a distributed program talk: point to point with tags, and collectives such as
// all-reduce, over any element type, from plain Go without cgo.
//
// A worker started by gorun (or by torchrun, or with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set by hand)
// joins the world, computes, and leaves:
//
//	world, err := comm.Init(ctx)
//	if err != nil {
//		return err
//	}
//	defer world.Close()
//	grads := []float32{1, 2, 3}
//	err = comm.AllReduce(ctx, world, grads, comm.Avg)
//
// docs/comm.md has every call beside those of torch.distributed and MPI, every error as it is printed, and how to choose
// groups.
//
// # Rules
//
//  1. Ranks in calls and in Status are ranks of the group passed; ranks in errors are world ranks.
//  2. All members of a group call its collectives in the same order, with the same type, operation, root and
//     length. In calls whose names end in V lengths may differ, and both sides of a block know how long it is. Calls
//     that differ end in a [MismatchError] that says who called what.
//  3. Lengths are in elements. A length of 0 is legal everywhere; a group of one rank works everywhere.
//  4. Messages between two ranks with equal tags arrive in the order in which they were sent. Point-to-point
//     messages and collectives never meet each other, nor do messages of different groups.
//  5. A buffer belongs to comm from the start of an operation until it has ended.
//  6. Send ends when its buffer may be used again, which says nothing about the receiver: up to 256 KiB travel
//     ahead, more waits for the receive. Send to oneself is buffered.
//  7. A Group may be used by several goroutines. The order of their collectives is then theirs to keep.
//  8. Calls that begin with I start an operation and return at once. A group carries its collectives out one after
//     another, in the order in which they were started, whether they block or not; groups go side by side.
//
// # Failure
//
// Every operation takes a context, has a timeout ([WithTimeout]) and returns an error that names the operation,
// its number in the group, and the rank at fault. When a member dies, every operation that needs it, directly or
// through another rank, ends at once with a [PeerError] on every other member, and so does every later call on the
// group: a failed group stays failed. A member that nobody needs any more may end as it likes, though [Group.Close]
// is how to leave in good order.
//
// Ranks that wait ask those that they wait for what they are in, from the first second on, and are answered whatever the
// program there does. So calls that differ are found even where no message of one meets the other, a timeout blames the
// rank at the end of all waits and says what it does instead, and waits in a circle are a [DeadlockError].
// [MonitoredBarrier] names every rank that does not come. What a group did last is its [Flight], which SIGQUIT and
// [WriteFlight] print, and which goes to a file when the group fails by a timeout or a mismatch.
//
// Cancelling a collective, or a transfer under way, fails the group likewise, because half a collective cannot be
// undone; only a receive that nothing has matched can be cancelled alone. A message that has arrived whole can still
// be received after the failure.
//
// An object that cannot be encoded or decoded fails the call and nothing else, with an [ObjectError].
//
// # Memory
//
// Ranks of one machine carry out collectives in memory that they share, which has no name and is gone with the last of them; what
// goes from machine to machine, and all else, goes over TCP. See [WithTransport] and [WithConnections]. Collectives
// of ranks that are all on one machine do not even copy through it if their buffers are of [Alloc].
//
// # Trust
//
// Ranks prove to each other that they know the job's token (gorun makes one for every round; else GORUN_TOKEN).
// Without a token nothing listens except on loopback, for programs of the same user, which have one in a file. What a peer sends
// is bounded before memory is taken for it, and objects are never decoded into code. With [WithTLS] all that leaves the machine is
// encrypted, the meeting at rank 0's store included.
//
// # Arithmetic
//
// Results are bitwise the same on every rank and in every run with the same ranks and lengths. Integers wrap. Min
// and Max follow Go's builtins: any NaN wins. Sums, products and averages of [Float16] and [BFloat16] are computed
// in float32 and rounded once. [Avg] of integers is the wrapped sum divided by the number of ranks, truncated
// toward zero. Operations of the caller's own ([NewOp]) need not commute: those are applied in order of rank.
//
// On amd64 vectors are combined with AVX-512 or AVX2 where the processor has them, to the same results.
// GORUN_KERNELS=avx2 or portable does with less. By which algorithm a call goes [Explain] tells, and [WithTuning] or
// GORUN_COMM_TUNE overrules.
package comm
