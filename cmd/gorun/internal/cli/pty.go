package cli

import "github.com/gorun/gorun/launcher"

// The values of --pty.
const (
	ptyAuto = "auto"
	ptyYes  = "yes"
	ptyNo   = "no"
)

var ptys = []string{ptyAuto, ptyYes, ptyNo}

// ptyFor says whether stdout of a local rank is a pseudo terminal. With auto it is one where it would be the terminal itself if there was
// no gorun. Python is unbuffered without it; with it, its debugger would change the modes of the terminal from which it reads.
func (o *options) ptyFor(onTerminal, python bool) func(localRank int) bool {
	if o.pty != ptyAuto {
		return func(int) bool { return o.pty == ptyYes }
	}
	return func(localRank int) bool {
		isShown := o.show == nil || o.show[localRank]
		inFile := (o.redirects.For(localRank)|o.tee.For(localRank))&launcher.Stdout != 0
		return onTerminal && !python && isShown && !inFile
	}
}
