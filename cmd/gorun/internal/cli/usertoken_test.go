package cli

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gorun/gorun/env/auth"
)

// userTokenIn is what userToken does in one directory.
func userTokenIn(dir string) (string, error) {
	token, _, err := userTokenOf([]string{dir})
	return token, err
}

// TestUserToken: whoever comes first makes it, and all have the same.
func TestUserToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".config", "gorun")
	tokens := make([]string, 20)
	var wg sync.WaitGroup
	for i := range tokens {
		wg.Go(func() {
			var err error
			if tokens[i], err = userTokenIn(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, token := range tokens {
		if token != tokens[0] || auth.CheckSecret([]byte(token)) != nil {
			t.Fatalf("tokens %q", tokens)
		}
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Errorf("the directory has %v, %v", names, err)
	}
	if info, err := os.Stat(filepath.Join(dir, userTokenName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
}

// TestUserTokenOfOthers: what somebody else may have written or read is refused, as what is no token, and the next directory taken.
func TestUserTokenOfOthers(t *testing.T) {
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
			if _, err := userTokenIn(dir); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(name, "another user") && os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			if err := spoil(dir, filepath.Join(dir, userTokenName)); err != nil {
				t.Fatal(err)
			}
			if name == "a file for the directory" {
				dir += "x"
			}
			token, err := userTokenIn(dir)
			if err == nil {
				t.Fatalf("took %q", token)
			}
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "--rdzv-token-file") {
				t.Errorf("the error is %q", err)
			}
			second := filepath.Join(base, "second")
			if _, file, err := userTokenOf([]string{dir, second}); err != nil || filepath.Dir(file) != second {
				t.Errorf("the next one: %s, %v", file, err)
			}
		})
	}
}

// swap puts a symbolic link in the place of what is at path.
func swap(path, moved string) error {
	if err := os.Rename(path, moved); err != nil {
		return err
	}
	return os.Symlink(moved, path)
}
