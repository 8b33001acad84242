// Package control lets people see and steer a running job. Each agent has a [Server]. It answers HTTP/1.1 requests on a Unix socket in a
// directory that only the user can enter, and there only requests of the same user or of root:
//
//	GET  /status             a status.Node
//	GET  /logs?rank=R&follow&unfinished
//	                         the last lines of the workers, one Line of JSON for each, and, with follow, those that come
//	POST /stop, /kill, /drain?force, /restart, /scale?nodes=MIN:MAX, /stacks
//	                         an agent.Command, which gets a Reply
//
// Server.ServeConn serves connections that others have accepted: in jobs over etcd, those that package liveness hands over.
//
// A [Client] asks them. [Sockets] finds the agents of the user on this machine. The sockets of agents that were killed stay until the next
// agent starts, or somebody looks for them.
//
// The server knows nothing but the newest snapshot that the agent has published. It asks workers that use package comm what they are doing
// when somebody wants to know, and passes commands on to the agent's loop.
package control
