package auth

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// loopbackOf calls loopbackIn with one directory.
func loopbackOf(dir string) (string, error) {
	token, _, err := loopbackIn(slices.Values([]string{dir}))
	return token, err
}

// TestLoopback: of many callers at a time one makes the file, and all get the same token.
func TestLoopback(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".config", "gorun")
	tokens := make([]string, 20)
	var wg sync.WaitGroup
	for i := range tokens {
		wg.Go(func() {
			var err error
			if tokens[i], err = loopbackOf(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, token := range tokens {
		if token != tokens[0] || CheckSecret([]byte(token)) != nil {
			t.Fatalf("tokens %q", tokens)
		}
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Errorf("the directory has %v, %v", names, err)
	}
	if info, err := os.Stat(filepath.Join(dir, loopbackName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
}

// TestLoopbackOfOthers: a file that another user may have written or read, or that has no token, is refused. The next directory is
// used.
func TestLoopbackOfOthers(t *testing.T) {
	for name, spoil := range map[string]func(dir, file string) error{
		"a readable file":          func(_, file string) error { return os.Chmod(file, 0o644) },
		"an empty file":            func(_, file string) error { return os.Truncate(file, 0) },
		"a writable file":          func(_, file string) error { return os.Chmod(file, 0o620) },
		"a writable directory":     func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"another user's file":      func(_, file string) error { return os.Chown(file, 65534, 65534) },
		"another user's directory": func(dir, _ string) error { return os.Chown(dir, 65534, 65534) },
		"a symbolic link":          func(_, file string) error { return swap(file, file+".real") },
		"a link for the directory": func(dir, _ string) error { return swap(dir, dir+".real") },
		"a file for the directory": func(dir, _ string) error { return os.WriteFile(dir+"x", nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "gorun")
			if _, err := loopbackOf(dir); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(name, "another user") && os.Geteuid() != 0 {
				testkit.Cannot(t, "only root can give files away")
			}
			if err := spoil(dir, filepath.Join(dir, loopbackName)); err != nil {
				t.Fatal(err)
			}
			if name == "a file for the directory" {
				dir += "x"
			}
			token, err := loopbackOf(dir)
			if err == nil {
				t.Fatalf("took %q", token)
			}
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "your own cannot be used") {
				t.Errorf("the error is %q", err)
			}
			second := filepath.Join(base, "second")
			if _, file, err := loopbackIn(slices.Values([]string{dir, second})); err != nil || filepath.Dir(file) != second {
				t.Errorf("the next one: %s, %v", file, err)
			}
		})
	}
}

// TestDirectories: the environment says where the file is, if it names a directory of this user.
func TestDirectories(t *testing.T) {
	ours, theirs := t.TempDir(), t.TempDir()
	last := filepath.Join("/tmp", "gorun-"+strconv.Itoa(os.Geteuid()))
	inHome := filepath.Join(ours, ".config", "gorun")
	if err := os.Chown(theirs, 65534, 65534); err != nil {
		t.Log("only root can give directories away")
		theirs = "/" // root's
	}
	for _, c := range []struct {
		name, config, home string
		first              string // empty: the environment is not believed
	}{
		{"a home", "", ours, inHome},
		{"settings elsewhere", ours, theirs, filepath.Join(ours, "gorun")},
		{"settings of another user", theirs, ours, inHome},
		{"relative settings", ".", ours, inHome},
		{"settings that are not there", filepath.Join(ours, "none"), ours, inHome},
		{"a home of another user", "", theirs, ""},
		{"a relative home", "", ".", ""},
		{"a home that is not there", "", filepath.Join(ours, "none"), ""},
		{"neither", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("XDG_CONFIG_HOME", c.config)
			t.Setenv("HOME", c.home)
			dirs := slices.Collect(directories())
			if dirs[len(dirs)-1] != last {
				t.Errorf("%q does not end with %s", dirs, last)
			}
			for _, dir := range dirs {
				if c.first == "" && (strings.HasPrefix(dir, ours) || strings.HasPrefix(dir, theirs+"/.config")) || !filepath.IsAbs(dir) {
					t.Errorf("%q has %s", dirs, dir)
				}
			}
			if c.first != "" && dirs[0] != c.first {
				t.Errorf("%q does not begin with %s", dirs, c.first)
			}
		})
	}
}

// swap moves a file or directory, and leaves a symbolic link to it in its place.
func swap(path, moved string) error {
	if err := os.Rename(path, moved); err != nil {
		return err
	}
	return os.Symlink(moved, path)
}

// TestStatusPage: the token of status pages is another one, in another file.
func TestStatusPage(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	loopback, _, err := LoopbackToken()
	if err != nil {
		t.Fatal(err)
	}
	token, file, err := StatusPageToken()
	if err != nil || token == loopback || file != filepath.Join(home, "gorun", statusPageName) {
		t.Errorf("token %q of %s, %v", token, file, err)
	}
	if again, _, err := StatusPageToken(); again != token {
		t.Errorf("then %q, %v", again, err)
	}
}
