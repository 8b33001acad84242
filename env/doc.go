// Package env is the contract between an agent and its workers: the environment variables that tell a worker its place in the job, and the
// documents that tell workers which outlive a round their place in the next one.
//
// The agent builds a [Worker] and passes Worker.Environ to the process. The process calls [FromOS], or reads
// the variables itself, in any language. The names without GORUN_ are torchrun's and have torchrun's meaning,
// so torch.distributed's env:// and everything written for torchrun work unchanged.
//
//	variable                       meaning
//	RANK                           number of this worker in the world, 0 to WORLD_SIZE-1 (required)
//	WORLD_SIZE                     workers in the world (required)
//	LOCAL_RANK                     number of this worker on its node, 0 to LOCAL_WORLD_SIZE-1
//	LOCAL_WORLD_SIZE               workers on this node
//	GROUP_RANK                     number of this node's agent in the round, 0 to GROUP_WORLD_SIZE-1
//	GROUP_WORLD_SIZE               agents in the round
//	ROLE_NAME                      role of this node's workers
//	ROLE_RANK                      number of this worker among the workers of its role, 0 to ROLE_WORLD_SIZE-1
//	ROLE_WORLD_SIZE                workers of this role
//	MASTER_ADDR                    host where rank 0 listens for the others (required)
//	MASTER_PORT                    port that is free for rank 0 to bind there (required)
//	TORCHELASTIC_RESTART_COUNT     restarts used so far
//	TORCHELASTIC_MAX_RESTARTS      restarts allowed
//	TORCHELASTIC_RUN_ID            id of the job
//	TORCHELASTIC_USE_AGENT_STORE   "True" if the agent serves a torch TCPStore at MASTER_ADDR:MASTER_PORT;
//	                               gorun always says "False": rank 0 serves it
//	TORCHELASTIC_ERROR_FILE        file into which the worker may write why it failed, as JSON; empty: none
//	GORUN_ROUND                    number of the round, from 1 upward
//	GORUN_TOKEN                    secret of the round, by which its workers know each other; empty: none
//	GORUN_TLS                      "True" if workers encrypt what they send from machine to machine
//	GORUN_STORE_ADDR               host:port of a store that the agent serves; empty: rank 0 serves one at
//	                               MASTER_ADDR:MASTER_PORT
//	GORUN_ROUND_SOCKET             path of a Unix socket by which this worker can hear of the next rounds, and
//	                               live on in them (see below); empty: it ends with its round
//	GORUN_PROGRESS_FILE            path of a file that the worker may touch to say that it makes progress, and
//	                               beside which it answers questions (see package progress); empty: none
//
// docs/environment.md lists these and every other variable that gorun, workers and package comm use.
//
// Invariants:
//
//  1. One table (names.go) drives both directions, so Parse of Environ gives back an equal Worker.
//  2. Environ sets every variable of the table, so no value of an outer gorun or torchrun remains.
//  3. Parse never panics, and reads each variable once. Its error names the variable, its value and what is wanted.
//  4. The token appears in Environ and nowhere else: not in a printed or logged Worker, not in an Error.
//
// A program that is started by hand needs only the four required variables. An absent size is 0, which means
// unknown; the number that should be below it is then not checked.
//
// # Rounds
//
// A job with --on-failure=replace starts only the dead workers again. Its agents name a Unix socket to every worker, in
// GORUN_ROUND_SOCKET. A worker that connects to it takes part: it survives the failure of others. One that does not is ended and
// started again, as with --on-failure=restart.
//
// Both sides send JSON documents, each on a line of its own. The agent sends
//
//	{"round":1,"env":{"RANK":"0","WORLD_SIZE":"4","MASTER_ADDR":"10.0.0.7",...}}
//	{"round":1,"over":true,"why":"...","died":[{"rank":3,"host":"node-b","exit_code":-9,...}]}
//	{"round":2,"env":{"RANK":"0","WORLD_SIZE":"4","MASTER_ADDR":"10.0.0.7",...},"died":[...]}
//
// The first is the round that the worker is in, and comes when it connects. The second comes as soon as a worker of this node has died, or
// the agent has learned that the round is over. The worker can then end operations that wait for the dead. The second comes again if there
// is more to say. The third comes when the next round has been formed. Its env has the variables that a new worker of that round finds in
// its environment: the worker may set them, and do what it does when it starts. It answers with
//
//	{"round":2}
//
// when it has read the document and goes on in that round. A worker that does not answer in time (--replace-timeout) is killed and
// started again, as is one that answers twice, or for another round.
//
// A worker whose round can go no further, though no worker has died as far as it knows, revokes the round. It sends
//
//	{"round":2,"revoke":"rank 1 has left"}
//
// The round is then over for all ranks, as if a worker had failed, but this worker lives on. If it revokes the round because ranks have not
// come to it, it may name them:
//
//	{"round":2,"revoke":"rank 1 is missing","missing":[1]}
//
// The agent then kills those of its own workers among them that have not answered the round, and their end is the end of the round. The worker
// must have answered the round itself. It must also have been started before the first round that they have not answered.
//
// No line has more than 1 MiB. Fields may be added: a reader ignores those that it does not know.
package env
