// Package agent is the policy of one node: join a round, start its workers, watch them, and decide what an
// exit, a signal or the end of the round means.
//
// [Run] is the whole interface: it returns when the job is over on this node. The error says how it ended:
// nil, a [*WorkerError] with the root cause and a summary to print, an [*InterruptError], or a [*StartError].
// What a failed worker wrote into its error file (see [Report]) is read when the job has ended, from regular files
// only, 1 MiB of each at most and 5 seconds in all; whatever is in it, the job ends as it would without. [Plan] tells
// what Run would start.
//
// Inside, machine.Step is the policy, pure: one event in, actions out. The loop around it turns what happens
// into events, and actions into calls, with one goroutine and one select.
//
//	             ┌────────── started ─────────▶ Running ──────── all exited 0 ────┐
//	             │                                 │                              │
//	             │             a failure, the round's end, an interrupt           │
//	             │                                 ▼                              ▼
//	──────▶ Joining ────── interrupt ─────▶ Stopping ──── gone, no restart ───▶ Done
//	             ▲                                 │                              ▲
//	             ├───────── gone, restart ─────────┘                              │
//	             └─────────────────────── not started ────────────────────────────┘
//
// What always holds (TestInvariants checks each by its number, over random histories):
//
//  1. At most one gang exists: a join is asked for only while no join is pending and no gang is left.
//  2. After an interrupt nothing is ever asked to start.
//  3. A failure costs one restart, the end of a round none; never more than MaxRestarts are used.
//  4. A gang in which a worker exited with NoRestart is never followed by another.
//  5. A gang is asked to stop at most once: at once when a worker has failed, the round is over, or an
//     interrupt has come. The first of these reasons decides what follows.
//  6. A gang, or its start, is killed only by the second interrupt.
//  7. The job finishes once, when no join is pending and no gang is left. Nothing is asked for afterwards.
//  8. A job in which every worker of the last gang exited 0 has succeeded; no other has.
//  9. The root cause is the first failure before any stop was asked for, or a crash that the stop did not reach
//     in time: it may have caused that failure. A worker that the agent stopped is named only if it answered with
//     NoRestart and nothing failed before.
//  10. The failure that stops a gang is announced at once, when the others have been asked to stop and before they
//     have, or if another gang follows it; only once.
package agent
