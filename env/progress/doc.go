// Package progress is the contract between workers and an agent that wants to know what they are doing: because somebody asks (gorun status),
// or because it watches for workers that hang (gorun --hang-timeout).
//
// The variable GORUN_PROGRESS_FILE names a file to each worker. A worker says that it makes progress by touching the file: its
// modification time changes. In Python:
//
//	pathlib.Path(os.environ["GORUN_PROGRESS_FILE"]).touch()
//
// A worker that has never touched it in a round is not watched there. If the file holds a decimal number, that is how many steps the
// worker has done, and the agent can compare workers.
//
// Two other names begin with that of the file. A worker that creates the file with .stacks at the end, and handles SIGUSR1, writes its
// stacks to it when it gets that signal, as Python's faulthandler does. A worker that listens on the Unix socket with .sock at the end
// answers questions: a line "status" or "stacks" gets one JSON document, a [Status], and the end of the connection. Package comm does both
// the touching and the answering by itself.
package progress
