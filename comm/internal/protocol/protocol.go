// Package protocol numbers what ranks do alike without telling each other: which messages a call sends to whom, how frames look, and where
// data lies in shared memory.
package protocol

// Version is the number of the protocol. Ranks with different numbers refuse each other when they meet. Raise it if you change anything that
// ranks do alike. TestProtocol fails where it sees such a change: it covers plans, the choice of algorithms, frames and numbers of calls, but
// not the code that carries them out.
const Version = 1
