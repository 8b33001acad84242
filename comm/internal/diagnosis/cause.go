package diagnosis

import "time"

// A rank whose operation fails because of another rank mostly ends, and then those that wait for it on other groups find that it
// has died. So it tells every rank that it is connected to, whatever their groups, why its operation has failed. If it is gone soon
// after, that is the root cause of what fails there.

// causeTime is how long after a failure of an operation of a rank the end of that rank counts as its consequence.
const causeTime = 10 * time.Second

// A Cause is why an operation of a rank has failed, through no fault of its own. The zero value is none.
type Cause struct {
	Failure *Failure
	At      time.Time // by this rank's clock
}

// IsRecent reports whether there is a cause, of which what happens now may be a consequence.
func (c *Cause) IsRecent(now time.Time) bool { return c.Failure != nil && now.Sub(c.At) < causeTime }

// RootOf is the failure at the root of f, which says that the rank with cause c is gone: f itself, or c if that is recent.
func (c *Cause) RootOf(f *Failure, now time.Time) *Failure {
	if !c.IsRecent(now) {
		return f
	}
	first := c.Failure
	root := &Failure{Kind: f.Kind, Rank: first.Rank, Text: first.Text, Remote: true, Finder: first.Finder}
	switch first.Kind {
	case PeerFailed, Left:
	case Aborted:
		root.Text = "aborted another group: " + first.Text
	case Mismatched, Deadlocked, Absent: // in which nobody is at fault for certain
		root = &Failure{Kind: f.Kind, Rank: f.Rank, Text: f.Text + "; on another group it had failed before: " + first.Error(), Err: f.Err}
	}
	return root
}
