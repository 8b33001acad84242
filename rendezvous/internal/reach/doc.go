// Package reach is about endpoints, the addresses at which the nodes of a job meet, as one machine sees them.
//
// It finds out which of them is this machine's to serve ([Own]), and says why nobody answers at one ([Diagnose]).
//
// Rules:
//
//  1. An endpoint is this machine's if its addresses are, and if it can listen on them. Names are never compared: what a
//     machine calls itself is not what others call it.
//  2. What is not certain is an error that says what would decide it: two nodes that serve one endpoint would each wait
//     for the nodes of the other.
//  3. Every error is one line: where, what, and what to do about it.
package reach
