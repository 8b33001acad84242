package death_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/death"
)

// byRank finds the failure of a rank.
func byRank(all []death.Failure) func(int) int {
	return func(rank int) int { return slices.IndexFunc(all, func(f death.Failure) bool { return f.Rank == rank }) }
}

// TestRootCauseOfChains: the failure at the root is one that is due to no other, or the first of those that are due to each other.
func TestRootCauseOfChains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		causes := rapid.SliceOfN(rapid.IntRange(-1, 7), 8, 8).Draw(t, "causes")
		all := make([]death.Failure, len(causes))
		for rank, cause := range causes {
			if all[rank].Rank = rank; cause >= 0 {
				all[rank].Peer = &death.Peer{Rank: cause, Finder: cause}
			}
			if cause == rank { // it names itself, which says nothing
				causes[rank] = -1
			}
		}
		first := rapid.IntRange(0, 7).Draw(t, "failure")
		root := death.RootCause(all, first, byRank(all))
		at := first
		for range causes { // now it is the root, or one of those that are due to each other
			if causes[at] >= 0 {
				at = causes[at]
			}
		}
		want := at
		for next := causes[at]; next >= 0 && next != at; next = causes[next] {
			want = min(want, next)
		}
		if root != want {
			t.Fatalf("%v: the root of %d is %d, want %d", causes, first, root, want)
		}
	})
}

// TestRootCause: of two failures. That of rank 0 is noticed first.
func TestRootCause(t *testing.T) {
	at := func(f death.Failure, ms int64) death.Failure {
		f.Written = time.UnixMilli(ms)
		return f
	}
	because := func(f death.Failure, rank, finder int) death.Failure {
		f.Peer = &death.Peer{Rank: rank, Finder: finder}
		return at(f, 5)
	}
	exits := func(code int) death.Failure { return death.Failure{Death: death.Death{ExitCode: code}} }
	crash, killed, revoked := exits(-int(syscall.SIGSEGV)), exits(-int(syscall.SIGKILL)), exits(1)
	stopped, own := exits(-int(syscall.SIGTERM)), exits(1)
	stopped.Stopped, killed.Stopped, own.Stopped = true, true, true
	revoked.Cause, revoked.Why = death.Revoked, "rank 7 has left"
	hung := exits(2)
	hung.Cause = death.Hang
	for _, c := range []struct {
		name          string
		first, second death.Failure
		want          int
	}{
		{"nobody says anything", exits(3), exits(4), 0},
		{"the first crashed", crash, exits(4), 0},
		{"the second crashed", exits(3), crash, 1},
		{"both crashed", crash, crash, 0},
		{"the second hung", exits(3), hung, 1},
		{"the second was killed with the others", exits(3), killed, 0},
		{"the second lost a connection", exits(3), exits(-int(syscall.SIGPIPE)), 0},
		{"the first said so first", at(exits(3), 1), at(exits(4), 2), 0},
		{"the first said so second", at(exits(3), 2), at(exits(4), 1), 1},
		{"at the same time", at(exits(3), 2), at(exits(4), 2), 0},
		{"the second was stopped on its way out", at(exits(3), 2), at(stopped, 1), 1},
		{"it was stopped, and exited by itself", at(exits(3), 2), at(own, 1), 1},
		{"the first says nothing", exits(3), at(exits(4), 1), 0},
		{"the second says nothing", at(exits(3), 2), exits(4), 0},
		{"a crash says so second", at(crash, 2), at(exits(4), 1), 0},
		{"because of the second", because(exits(1), 1, 0), exits(3), 1},
		{"as the second has found", because(exits(1), 7, 1), exits(3), 1},
		{"because of one that is not known", because(exits(1), 7, 0), exits(3), 0},
		{"because of one that was stopped", because(exits(1), 1, 0), stopped, 0},
		{"that had failed before", because(exits(1), 1, 0), at(stopped, 4), 1},
		{"that has failed later", because(exits(1), 1, 0), at(stopped, 6), 0},
		{"each because of the other", because(exits(1), 1, 0), because(exits(3), 0, 1), 0},
		{"an older one names the first", at(exits(1), 6), because(exits(3), 0, 1), 0},
		{"it has only found why the first revoked the round", because(revoked, 7, 1), at(because(stopped, 7, 1), 4), 0},
		{"a crash because of another", because(crash, 1, 0), exits(3), 0},
	} {
		c.second.Rank = 1
		all := []death.Failure{c.first, c.second}
		if got := death.RootCause(all, 0, byRank(all)); got != c.want {
			t.Errorf("%s: rank %d, want %d", c.name, got, c.want)
		}
	}
}
