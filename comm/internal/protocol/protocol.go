// Package protocol numbers what ranks do alike without telling each other: which messages a call sends to whom, how
// frames look, and where data lies in shared memory.
package protocol

// Version is the number of the protocol. Ranks with different numbers refuse each other when they meet. Raise it if you
// change anything that ranks do alike. Tests whose names begin with TestProtocol fail if plans, choices of algorithms,
// frames, numbers of calls or the layout of shared memory have changed. They do not see what the code makes of these:
// how package hier cuts vectors into pieces, for example.
const Version = 8
