package control

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var aRecord = Record{Job: "train.sock", Backend: "embedded", Endpoint: "10.0.0.1:29400", Conf: map[string]string{"ca_cert": "/ca"}, Token: "0123456789abcdef"}

// recordDirectory is where records are in this test.
func recordDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return filepath.Join(dir, "gorun")
}

func recordsIn(dir string) []string {
	return slices.DeleteFunc(Records(), func(path string) bool { return filepath.Dir(path) != dir })
}

// TestRecord: a record is read as it was written, is no socket, and is gone when it is removed.
func TestRecord(t *testing.T) {
	dir := recordDirectory(t)
	remove, err := WriteRecord(aRecord)
	if err != nil {
		t.Fatal(err)
	}
	list := recordsIn(dir)
	if len(list) != 1 || !MayBeOf(list[0], aRecord.Job) || MayBeOf(list[0], "another") {
		t.Fatalf("%q", list)
	}
	info, err := os.Stat(list[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if got, err := ReadRecord(list[0]); err != nil || !reflect.DeepEqual(got, aRecord) {
		t.Errorf("%+v, %v", got, err)
	}
	removeDead()
	if sockets, err := filesIn([]string{dir}, suffix); err != nil || len(sockets) > 0 {
		t.Errorf("sockets: %q, %v", sockets, err)
	}
	remove()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestStaleRecord: a record that nobody has locked is removed, also one that has no name yet, by who looks and by who writes another one.
func TestStaleRecord(t *testing.T) {
	dir := recordDirectory(t)
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	leave := func() {
		for _, name := range []string{"1-x.job", ".17.job"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	leave()
	remove, err := WriteRecord(aRecord)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("beside a new one: %v", left)
	}
	leave()
	if list := recordsIn(dir); len(list) != 1 {
		t.Errorf("%q", list)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// TestBadRecord: what others may have read or written, and what makes no sense, is refused, and not removed.
func TestBadRecord(t *testing.T) {
	dir := recordDirectory(t)
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	const good = `{"job":"x","backend":"embedded","endpoint":"a:1","token":"a secret"}`
	path := filepath.Join(dir, "1-x.job")
	write := func(text string, mode os.FileMode) func() error {
		return func() error {
			if err := os.WriteFile(path, []byte(text), mode); err != nil {
				return err
			}
			return os.Chmod(path, mode)
		}
	}
	for name, c := range map[string]struct {
		make      func() error
		want      string
		isForeign bool // nobody knows whose it is
	}{
		"good":           {write(good, 0o600), "", false},
		"world-readable": {write(good, 0o644), "can be used by other users: remove it", true},
		"of another user": {func() error {
			if os.Geteuid() != 0 {
				return write(good, 0o644)()
			}
			if err := write(good, 0o600)(); err != nil {
				return err
			}
			return os.Chown(path, 1, 1)
		}, ": remove it", true},
		"link":      {func() error { return os.Symlink("/etc/passwd", path) }, "is a symbolic link: remove it", true},
		"directory": {func() error { return os.Mkdir(path, 0o700) }, "is no regular file: remove it", true},
		"pipe":      {func() error { return syscall.Mkfifo(path, 0o600) }, "is no regular file: remove it", true},
		"empty":     {write("", 0o600), "it is no record of a job: remove it", false},
		"garbage":   {write(good+"a secret", 0o600), "it is no record of a job: remove it", false},
		"other":     {write(`{"job":"x","backend":"embedded","token":"a secret"}`, 0o600), "it is no record of a job: remove it", false},
		"long":      {write(good+strings.Repeat(" ", maxRecord), 0o600), "a record has at most 65536 bytes: remove it", false},
	} {
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		_, err := ReadRecord(path)
		if (err == nil) != (c.want == "") || err != nil && (!strings.HasPrefix(err.Error(), path) || !strings.HasSuffix(err.Error(), c.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if kept := c.isForeign; kept != slices.Contains(Records(), path) {
			t.Errorf("%s: it is kept: %v", name, !kept)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzRecord: what is in a record is understood or refused.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"job":"x","backend":"embedded","endpoint":"a:1","conf":{"a":"b"}}`))
	f.Add([]byte(`{"job":"x","conf":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := parseRecord(text); err == nil && (r.Job == "" || r.Endpoint == "" || len(text) > maxRecord) {
			t.Errorf("%+v", r)
		}
	})
}
