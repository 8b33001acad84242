//go:build linux

package filestore

import (
	"testing"

	"golang.org/x/sys/unix"
)

// In a user namespace without root, what belongs to root looks like what belongs to any other unknown user. It is root's if
// nobody else could have put it there.
func TestFoldersOfUnknownUsers(t *testing.T) {
	const me, unknown, sticky = 1000, 65534, unix.S_IFDIR | unix.S_ISVTX | 0o777
	o := owners{known: []uint32{0, me}, unknown: unknown, foreign: true}
	for _, c := range []struct {
		path string
		st   unix.Stat_t
		good bool
	}{
		{"/", unix.Stat_t{Uid: unknown, Mode: unix.S_IFDIR | 0o755}, true},
		{"/tmp", unix.Stat_t{Uid: unknown, Mode: sticky}, true},
		{"/tmp/theirs", unix.Stat_t{Uid: unknown, Mode: unix.S_IFDIR | 0o755}, false},
		{"/tmp", unix.Stat_t{Uid: unknown, Mode: sticky}, true},
		{"/tmp/own", unix.Stat_t{Uid: me, Mode: unix.S_IFDIR | 0o700}, true},
		{"/tmp/own/theirs", unix.Stat_t{Uid: 1001, Mode: unix.S_IFDIR | 0o755}, false},
	} {
		if c.path == "/tmp" {
			o.shared = false
		}
		if err := o.checkDir(&c.st, c.path); (err == nil) != c.good {
			t.Errorf("%s: %v", c.path, err)
		}
	}
	o = owners{known: []uint32{0, me}}
	if o.checkDir(&unix.Stat_t{Uid: unknown, Mode: unix.S_IFDIR | 0o755}, "/") == nil {
		t.Error("where every user is known, nobody is unknown")
	}
}
