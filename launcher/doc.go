// Package launcher runs the processes of this machine: it starts the workers of a gang, shows and stores
// their output, reports how each of them ended, and stops them. It knows nothing about rounds, ranks on other
// machines or restarts, which are the agent's business.
//
// A program uses it in three steps. The guard is the same binary, executed again: there, main never runs (see package guard).
//
//	func main() {
//		program, err := launcher.Python("").Resolve("./train", args)
//		err = program.Build(ctx, dir, os.Stderr) // if it is Go source; removing dir is up to you
//		gang, err := launcher.Start(ctx, launcher.Spec{Argv: program.Argv, Workers: workers, ...})
//		for exit := range gang.Exits() { // gang.Stop, gang.Kill, gang.Signal at any time
//		}
//	}
//
// # The guard
//
// A gang has one guard, a process between the agent and its workers. If it dies, they die, and those that replace
// them (see Gang.Replace) have another:
//
//	agent ── guard ── worker 0 ── ...
//	              └── worker 1 ── ...
//
// # What it guarantees
//
//  1. Nothing that a worker started outlives the gang: not after a normal end, a stop, or SIGKILL to the agent or the
//     guard. (If both die at once, the workers die, but what they have started may survive.) This needs no privileges. There
//     are two exceptions, which Spec.Warn reports: processes that became another user's through setuid, and processes
//     that SIGKILL does not end in time, because they are frozen or blocked in the kernel.
//  2. Exits are events, in the order in which they happened. The first failure is delivered first.
//  3. Before a worker's Exit is delivered, what the worker wrote is in Exit.Tail and on its way to the console and
//     the logs, even if a process that it left behind still holds its output open. What a log file does not accept
//     goes to the console.
//  4. The console gets whole lines of valid UTF-8 (but see Spec.Raw), and never mixes two workers in one line. A
//     terminal (Spec.Live) also shows a progress bar while it grows, and erases it afterwards. Logs get the worker's
//     bytes unchanged, in several files if necessary (LogSpec.MaxSize).
//  5. A worker has only the file descriptors 0 (/dev/null, or Spec.Stdin), 1 and 2, and its own process group.
//     All workers of a gang are in one session, which has no terminal.
//
// If a console or disk blocks, the workers that write to it also block, as under a shell, but only when they have filled
// their shares of a queue (see package spool). Nothing else is delayed: no exit, no Stop or Kill, no line of another
// worker. The owner of Spec.Spool drains it when the job is over.
//
// Workers run only on Linux. On other systems, the package compiles, and Start returns an error.
//
// The package is longer than a package here should be. What can stand alone is in packages below it: guard, spool, proc, topology. The
// rest is one gang with its output, whose parts (exits, stop, streams, log files) share its state.
package launcher
