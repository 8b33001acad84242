//go:build linux

package filestore

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// owners are the users that may own the directories on the way to a store.
type owners struct {
	known   []uint32
	unknown uint32 // stands for all users that do not exist in this user namespace, possibly root among them
	foreign bool   // there are such users
	shared  bool   // other users may create files in the directory that was checked last
}

// trustedOwners returns root and this user.
func trustedOwners() owners {
	o := owners{known: []uint32{0, uint32(os.Geteuid())}}
	users, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || slices.Equal(strings.Fields(string(users)), []string{"0", "0", "4294967295"}) {
		return o
	}
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if uid, parseErr := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32); err == nil && parseErr == nil {
		o.unknown, o.foreign = uint32(uid), true
	}
	return o
}

// check refuses what another user owns. It takes an unknown user for root if no other user could have created the file.
func (o *owners) check(st *unix.Stat_t, path string) error {
	if slices.Contains(o.known, st.Uid) || o.foreign && st.Uid == o.unknown && !o.shared {
		return nil
	}
	return fmt.Errorf("%s belongs to user %d, who could put another file in place of the store's: choose a folder of your own", path, st.Uid)
}

// checkDir refuses a directory of another user, and one in which others may replace files that they do not own.
func (o *owners) checkDir(st *unix.Stat_t, path string) error {
	if err := o.check(st, path); err != nil {
		return err
	}
	writers := otherWriters(st)
	o.shared = writers != ""
	if writers != "" && st.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("folder %s can be written by %s, and has no sticky bit: choose another, or chmod it", path, writers)
	}
	return nil
}

// otherWriters returns who else may write to a file or directory. It is empty if nobody may.
func otherWriters(st *unix.Stat_t) string {
	groups, _ := os.Getgroups()
	switch {
	case st.Mode&0o002 != 0:
		return "everybody on this machine"
	case st.Mode&0o020 != 0 && st.Gid != 0 && int(st.Gid) != os.Getegid() && !slices.Contains(groups, int(st.Gid)):
		return fmt.Sprintf("group %d, of which this user is none,", st.Gid)
	}
	return ""
}

// checkFile refuses a file that is not a regular file of this user, has several names, or can be written by others.
func checkFile(st *unix.Stat_t, path string) error {
	switch writers := otherWriters(st); {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return fmt.Errorf("%s is a symbolic link: name the file itself", path)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%s is not a regular file", path)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("file %s belongs to user %d: remove it, or choose another name", path, st.Uid)
	case st.Nlink > 1:
		return fmt.Errorf("file %s has %d names: choose another", path, st.Nlink)
	case writers != "":
		return fmt.Errorf("file %s can be written by %s: remove it, or chmod go-w", path, writers)
	}
	return nil
}
