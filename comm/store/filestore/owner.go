//go:build linux

package comm

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// owners are the users who may own the folders on the way to a store.
type owners struct {
	known   []uint32
	unknown uint32 // stands for users that mean nothing in this user namespace, among whom root may be
	foreign bool   // there are such users
	shared  bool   // others may put something into the folder looked at last
}

func folderOwners() owners {
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

// check refuses what another user owns. Of unknown users only root can have put it where nobody else may.
func (o *owners) check(st *unix.Stat_t, path string) error {
	if slices.Contains(o.known, st.Uid) || o.foreign && st.Uid == o.unknown && !o.shared {
		return nil
	}
	return fmt.Errorf("%s belongs to user %d, who could put another file in place of the store's: choose a folder of your own", path, st.Uid)
}

// checkFolder refuses the folder of another user, and one in which others may replace what they do not own.
func (o *owners) checkFolder(st *unix.Stat_t, path string) error {
	if err := o.check(st, path); err != nil {
		return err
	}
	writers := othersWrite(st)
	o.shared = writers != ""
	if writers != "" && st.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("folder %s can be written by %s, and has no sticky bit: choose another, or chmod it", path, writers)
	}
	return nil
}

// othersWrite says who else may write to what st is about, or nothing.
func othersWrite(st *unix.Stat_t) string {
	groups, _ := os.Getgroups()
	switch {
	case st.Mode&0o002 != 0:
		return "everybody on this machine"
	case st.Mode&0o020 != 0 && st.Gid != 0 && int(st.Gid) != os.Getegid() && !slices.Contains(groups, int(st.Gid)):
		return fmt.Sprintf("group %d, of which this user is none,", st.Gid)
	}
	return ""
}

// checkFile refuses what is not this user's file, has other names, or can be written by others.
func checkFile(st *unix.Stat_t, path string) error {
	switch writers := othersWrite(st); {
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
