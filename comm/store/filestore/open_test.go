//go:build linux

package filestore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/comm/store/filestore"
)

// A trap is what somebody has put in place of a store, in an empty directory of this user.
type trap struct {
	want    string                                  // part of the error; empty: it is none
	owner   bool                                    // another user has, which takes root to set up
	prepare func(dir string) (path string, _ error) // of the store
}

const otherUser = 54321

func makeFile(path string, mode os.FileMode, text string) error {
	return errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode))
}

func makeDir(path string, mode os.FileMode) error {
	return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode))
}

var traps = map[string]trap{
	"a symbolic link to nothing": {"is a symbolic link", false, func(dir string) (string, error) {
		return dir + "/store", os.Symlink(dir+"/elsewhere", dir+"/store")
	}},
	"a symbolic link to a file of this user": {"is a symbolic link", false, func(dir string) (string, error) {
		return dir + "/store", errors.Join(makeFile(dir+"/mine", 0o600, ""), os.Symlink(dir+"/mine", dir+"/store"))
	}},
	"a second name of a file of this user": {"has 2 names", false, func(dir string) (string, error) {
		return dir + "/store", errors.Join(makeFile(dir+"/mine", 0o600, ""), os.Link(dir+"/mine", dir+"/store"))
	}},
	"a pipe": {"is not a regular file", false, func(dir string) (string, error) {
		return dir + "/store", syscall.Mkfifo(dir+"/store", 0o600)
	}},
	"a folder that everybody can write": {"can be written by everybody on this machine, and has no sticky bit", false, func(dir string) (string, error) {
		return dir + "/open/store", makeDir(dir+"/open", 0o777)
	}},
	"a folder in one that everybody can write": {"/open can be written by everybody", false, func(dir string) (string, error) {
		return dir + "/open/own/store", errors.Join(makeDir(dir+"/open", 0o777), makeDir(dir+"/open/own", 0o700))
	}},
	"a folder that everybody can write, with the sticky bit": {"", false, func(dir string) (string, error) {
		return dir + "/tmp/store", makeDir(dir+"/tmp", 0o777|os.ModeSticky)
	}},
	"a symbolic link of this user on the way": {"", false, func(dir string) (string, error) {
		return dir + "/way/store", errors.Join(makeDir(dir+"/real", 0o700), os.Symlink("./../"+filepath.Base(dir)+"/real", dir+"/way"))
	}},
	"an absolute symbolic link of this user on the way": {"", false, func(dir string) (string, error) {
		return dir + "/way/store", errors.Join(makeDir(dir+"/real", 0o700), os.Symlink(dir+"/real", dir+"/way"))
	}},
	"a symbolic link on the way to where everybody can write": {"can be written by everybody", false, func(dir string) (string, error) {
		return dir + "/way/store", errors.Join(makeDir(dir+"/open", 0o777), os.Symlink(dir+"/open", dir+"/way"))
	}},
	"symbolic links in a circle": {"too many levels of symbolic links", false, func(dir string) (string, error) {
		return dir + "/a/store", errors.Join(os.Symlink("b", dir+"/a"), os.Symlink("a", dir+"/b"))
	}},
	"a file of another user": {"belongs to user 54321", true, func(dir string) (string, error) {
		return dir + "/store", errors.Join(makeFile(dir+"/store", 0o600, ""), os.Chown(dir+"/store", otherUser, otherUser))
	}},
	"a file of another user in a sticky folder": {"belongs to user 54321", true, func(dir string) (string, error) {
		return dir + "/tmp/store", errors.Join(makeDir(dir+"/tmp", 0o777|os.ModeSticky),
			makeFile(dir+"/tmp/store", 0o666, ""), os.Chown(dir+"/tmp/store", otherUser, otherUser))
	}},
	"a folder of another user": {"belongs to user 54321", true, func(dir string) (string, error) {
		return dir + "/theirs/store", errors.Join(makeDir(dir+"/theirs", 0o755), os.Chown(dir+"/theirs", otherUser, otherUser))
	}},
	"a folder in one of another user": {"/theirs belongs to user 54321", true, func(dir string) (string, error) {
		return dir + "/theirs/own/store", errors.Join(makeDir(dir+"/theirs", 0o755), makeDir(dir+"/theirs/own", 0o700), os.Chown(dir+"/theirs", otherUser, otherUser))
	}},
	"a symbolic link of another user on the way": {"/way belongs to user 54321", true, func(dir string) (string, error) {
		return dir + "/way/store", errors.Join(makeDir(dir+"/own", 0o700), os.Symlink(dir+"/own", dir+"/way"), os.Lchown(dir+"/way", otherUser, otherUser))
	}},
	"a folder that a group can write of which this user is none": {"can be written by group 54321", true, func(dir string) (string, error) {
		return dir + "/team/store", errors.Join(makeDir(dir+"/team", 0o770), os.Chown(dir+"/team", -1, otherUser))
	}},
	"a file that a group can write of which this user is none": {"can be written by group 54321", true, func(dir string) (string, error) {
		return dir + "/store", errors.Join(makeFile(dir+"/store", 0o660, ""), os.Chown(dir+"/store", -1, otherUser))
	}},
}

// Open refuses what others have put in place of a store, and leaves it as it is.
func TestRefusesWhatOthersPutInItsWay(t *testing.T) {
	for name, trap := range traps {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, err := trap.prepare(dir)
			if trap.owner && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL)) {
				t.Skip("this user cannot give files to others")
			}
			if err != nil {
				t.Fatal(err)
			}
			before := listing(t, dir)
			s, err := filestore.Open(path)
			if trap.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(s.Set(t.Context(), "key", []byte("v")), s.Close()); err != nil {
					t.Fatal(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), trap.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want one with %q and the path", err, trap.want)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("there was\n%sand now there is\n%s", before, after)
			}
		})
	}
}

// listing returns what lies in dir, one entry a line, with the sizes of files.
func listing(t *testing.T, dir string) string {
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			fmt.Fprintln(&b, info.Mode(), path, info.Size())
		} else if err == nil {
			fmt.Fprintln(&b, info.Mode(), path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
