// Package embedded hosts etcd inside an agent, for jobs that have no etcd of their own. The node that owns an endpoint of
// the rendezvous starts a [Server] there; with three endpoints the three servers are one cluster, of which any one may
// die.
//
// Rules:
//
//  1. Only the command imports this package: it brings 10 MB of server. Who talks to a server takes an etcd client, and a
//     [tls.Config] of [ClientTLS].
//  2. A server listens on the addresses of its endpoint and, in a cluster, on the port above for the other members;
//     nowhere else.
//  3. To a server on loopback that has no credentials everybody may connect. To any other one nobody may who cannot prove who
//     they are: with a certificate that holders of the job's secret make for themselves, or with one that a given authority has
//     signed. Members prove themselves to each other in the same way.
//  4. Start returns a server that serves, or leaves nothing behind. After Close no port, no goroutine and no temporary file
//     is left, and Close takes as long as its context says, and three seconds at most beyond.
//  5. etcd never ends the process. What would have is the server's Err, and closes Done.
//  6. A server of three that has lost its data is a new member: it has no vote before it has caught up, and the one that it
//     was is removed. Nothing is founded beside a cluster that is there.
//  7. Data in a temporary directory is not flushed to the disk: it outlives nothing. Data in a given one is.
package embedded
