// Package comm gives the ranks of a distributed program collectives, such as all-reduce, and messages from one rank to
// another, for elements of any numeric type, in plain Go without cgo.
//
// A worker that gorun or torchrun has started, or that finds RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its
// environment, joins the world, computes, and leaves:
//
//	world, err := comm.Init(ctx)
//	if err != nil {
//		return err
//	}
//	defer world.Close()
//	grads := []float32{1, 2, 3}
//	err = comm.AllReduce(ctx, world, grads, comm.Avg)
//
// docs/comm.md has every call beside those of torch.distributed and MPI, every error as it is printed, and how to
// choose groups.
//
// # Rules
//
//  1. Ranks in calls and in Status are ranks of the group that you pass. Ranks in errors are world ranks.
//  2. All members of a group call its collectives in the same order, with the same type, operation, root and length. In calls whose
//     names end in V, lengths may differ, but both sides of a block must know its length. If calls differ, they fail with a
//     [MismatchError] that says which rank called what.
//  3. Lengths are in elements. A length of 0 and a group of one rank are allowed everywhere.
//  4. Messages between two ranks with equal tags arrive in the order in which they were sent. Point-to-point messages never match
//     collectives, and messages of one group never match those of another.
//  5. A buffer belongs to comm from the start of an operation until its end.
//  6. Send returns when you may use its buffer again. That says nothing about the receiver: messages of up to 256 KiB are sent ahead
//     (eager), longer ones wait for the receive (rendezvous). A message to the rank itself is buffered.
//  7. Several goroutines may use a [Group], but its collectives must begin in the same order on all ranks.
//  8. Calls that begin with I start an operation and return at once. A group carries its collectives out one after another, in the order
//     in which they were started, whether they block or not. Different groups work at the same time.
//
// # Failure
//
// Every operation takes a context, has a timeout ([WithTimeout]) and returns an error that names the operation, its
// number in the group, and the rank at fault. When a member dies, every operation that needs it, directly or through
// another rank, ends at once with a [PeerError] on every other member. So does every later call on the group: a failed
// group stays failed. A member that no other one needs any more may end in any way. The regular way to leave is
// [Group.Close].
//
// A rank that has waited for a second asks the rank that it waits for what that one is doing, and gets an answer,
// whatever the program there does. So comm finds calls that differ even if no message of one reaches the other, and a
// timeout names the rank at the end of all waits, and what it does instead. Waits in a circle are a [DeadlockError].
// [MonitoredBarrier] names every rank that does not come. The [Flight] of a group has its last operations. SIGQUIT and
// [WriteFlight] print it, and comm writes it to a file when the group fails by a timeout or a mismatch.
//
// If you cancel a collective, or a transfer under way, the group fails as well, because half a collective cannot be
// undone. Only a receive that no message has matched can be cancelled alone. A message that has arrived completely can
// still be received after the failure.
//
// If an object cannot be encoded or decoded, only that call fails, with an [ObjectError].
//
// # Memory
//
// Ranks of one machine carry out collectives in memory that they share. It has no name, and is gone with the last of
// them. Everything that goes to another machine goes over TCP. See [WithTransport] and [WithConnections]. If all ranks
// of a group are on one machine and their buffers come from [Alloc], collectives use these in place, without a copy.
//
// # Trust
//
// Ranks prove to each other that they know the job's token. gorun makes one for every round; without gorun, you set it in
// GORUN_TOKEN. Without a token, comm listens on loopback only, for programs of the same user, which have a token in a
// file. comm checks the size of what a peer sends before it allocates memory for it, and never decodes objects into
// code. With [WithTLS], everything that leaves the machine is encrypted, including the connections to rank 0's store.
//
// # Arithmetic
//
// Results are bitwise the same on every rank, and in every run with the same ranks and lengths. Integers wrap. Min and
// Max follow Go's builtins: any NaN wins. Sums, products and averages of [Float16] and [BFloat16] are computed in
// float32 and rounded once. [Avg] of integers is the wrapped sum divided by the number of ranks, truncated toward zero.
// Operations of your own ([NewOp]) need not commute; those that do not are applied in order of rank.
//
// On amd64, vectors are combined with AVX-512 or AVX2, if the processor has them, with the same results.
// GORUN_KERNELS=avx2 or portable chooses another level. [Explain] says by which algorithm a call is carried out.
// [WithTuning] or GORUN_COMM_TUNE overrules that choice.
//
// # Layout
//
// There is a file for each family of calls. What carries them out is below comm/internal.
package comm
