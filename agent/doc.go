// Package agent is the policy of one node: it joins a round, starts the workers, watches them, reports to the
// rendezvous how they end, and decides what an exit, a signal or the end of the round means.
//
// [Run] is the whole interface: it returns when the job is over on this node. The error says how the job ended: nil, a
// [*WorkerError] with the root cause and a summary to print, an [*InterruptError], a [*StartError], or a
// [*rendezvous.ClosedError]. The agent reads what a failed worker wrote to its error file (see [ErrorFile]) twice: for the
// other nodes when the worker has failed, and for the summary when the job has ended. It reads only regular files, at most
// 1 MiB of each, and takes at most 5 seconds in all. [Plan] returns what Run would start.
//
// Inside, stateMachine.Step is the policy. It is pure: it takes one event and returns actions. The loop around it turns
// what happens into events, and actions into calls, with one goroutine and one select. The rendezvous, which has
// the budget of restarts, decides whether a new round or the end of the job follows a failure.
//
//	             ┌────────── started ─────────▶ Running ─────── all exited 0 ──────┐
//	             │                                 │                               │
//	             │             a failure, the round's end, an interrupt            │
//	             │                                 ▼                               ▼
//	──────▶ Joining ────── interrupt ─────▶ Stopping ── gone, the round is not ▶ Waiting
//	             ▲                                 │         over yet              │
//	             │                                 │                               │
//	             ├── gone, a newer round is to form ◀──────────────────────────────┤
//	             │                                 │                               │
//	             └─ not started ─▶ Done ◀── gone, the job is over; an interrupt ───┘
//
// With Config.SocketDir, a gang is revoked instead of stopped if another round may follow (see [workergroup.Group]).
// Stopping then ends when only survivors are left of the gang. They live on while the machine is Joining, and are in
// the next round. If none follows after all, they are stopped.
//
// A worker that lives on may revoke its round, too. That is a failure of this worker, which has not ended.
//
// A worker that hangs has failed as well. Between Running and Stopping, the machine is then Diagnosing: it waits until it is known what the
// workers are doing. The other nodes do the same, because the failure is reported to them before this.
//
// These invariants always hold (TestInvariants checks each, by its number, over random histories):
//
//  1. At most one gang exists: a join is requested only while no join is pending and no gang is left, or only survivors of one that was
//     revoked.
//  2. After an interrupt, nothing is started.
//  3. A failure that stops a gang is reported at once. If all workers have exited 0, that is reported when the gang
//     is gone. There is one report in a round, and none after its end. Another gang is started only if a newer round
//     follows.
//  4. A gang in which a worker exited with NoRestart is never followed by another. If that happens when another is being started, the
//     start is cancelled; if it is too late for that, the other fails because of that worker.
//  5. A gang is asked to stop at most once: as soon as a worker has failed, the round is over, or an interrupt has
//     come. The first of these reasons decides what follows. It is revoked at most once, before that, and never for an interrupt.
//  6. Only a second interrupt kills a gang, or its start. The end of Run's context is one interrupt, and so is a SIGTERM after it.
//  7. The job finishes once, when no join is pending and no gang is left, and not before the round is over, unless
//     there is an interrupt, the report has failed, or the exit barrier has timed out. No action follows.
//  8. If the job was closed, its outcome is the outcome here, unless an interrupt stopped the gang. If it was not
//     closed, the job has succeeded only if every worker of the last gang exited 0.
//  9. If the job was closed because of a failure on another node, that failure is the root cause. Otherwise the root
//     cause is the first failure before any stop was requested, or a crash that the stop did not reach in time, since
//     it may have caused that failure. A worker that the agent stopped is the root cause only if it exited with
//     NoRestart and nothing failed before.
//  10. The failure that stops a gang is announced once: at once, when the other workers have been asked to stop and
//     before they have ended, or when another gang follows.
//  11. A worker that hangs is killed once, and the gang is asked to stop at the same time. Both wait until it is known what the workers are
//     doing, or an interrupt comes. If a worker of another node hangs, and the round ends because of it, this gang waits in the same way.
//  12. Every command gets one answer, before anything else follows from it. After the end it is refused. CommandStop and CommandDrain are
//     one interrupt, CommandKill is two, and none of them adds to interrupts that have come before. A repeated
//     CommandStop or CommandKill is carried out already: its answer has no error.
package agent
