// Package rounds is the contract between an agent and workers that outlive a round: how a worker learns that its round is over, which
// workers died of what, and which rank it has in the next round. Package env is the contract for workers that start.
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
package rounds
