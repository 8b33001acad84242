package launcher

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// stored returns what the files of one stream hold, by name, which is their order.
func stored(t interface{ Fatal(...any) }, dir string) (names []string, contents [][]byte) {
	names, err := filepath.Glob(filepath.Join(dir, "stdout*.log")) // sorted
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, b)
	}
	return names, contents
}

func TestLogFilesHoldAllInOrder(t *testing.T) {
	base, checks := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		dir := filepath.Join(base, fmt.Sprint(checks))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		limit := rapid.Int64Range(1, 40).Draw(t, "limit")
		var want []byte
		ends := map[int]bool{} // of attempts
		for range rapid.IntRange(1, 3).Draw(t, "attempts") {
			f, err := openLogFile(filepath.Join(dir, "stdout.log"), limit, 0)
			if err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 8).Draw(t, "writes") {
				b := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("ab\n")), 0, 100, -1).Draw(t, "bytes"))
				if n, err := f.Write(b); n != len(b) || err != nil {
					t.Fatalf("%d of %d bytes written, %v", n, len(b), err)
				}
				want = append(want, b...)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			ends[len(want)] = true
		}
		names, contents := stored(t, dir)
		if got := bytes.Join(contents, nil); !bytes.Equal(got, want) {
			t.Fatalf("%v hold %q, want %q", names, contents, want)
		}
		offset := 0
		for _, b := range contents[:len(contents)-1] { // rotated at the first end of a line at or after limit, no later
			offset += len(b)
			if int64(len(b)) < limit || b[len(b)-1] != '\n' && !ends[offset] || bytes.ContainsRune(b[limit-1:len(b)-1], '\n') {
				t.Fatalf("%q was rotated at a limit of %d", b, limit)
			}
		}
	})
}

// TestALogFileOfSeveralGangs: they share its limit, and what one of them has written last stays when others rotate it.
func TestALogFileOfSeveralGangs(t *testing.T) {
	const limit, keep, rounds = 100, 3, 50
	dir := t.TempDir()
	path := filepath.Join(dir, "stdout.log")
	var gangs []io.WriteCloser
	for range 3 {
		f, err := openLogFile(path, limit, keep)
		if err != nil {
			t.Fatal(err)
		}
		gangs = append(gangs, f)
	}
	for round := range rounds {
		for gang, f := range gangs {
			if _, err := fmt.Fprintf(f, "line %2d of gang %d\n", round, gang); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, f := range gangs {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	names, contents := stored(t, dir)
	if len(contents) > keep+1 {
		t.Errorf("%v, want %d rotated files", names, keep)
	}
	for i, b := range contents[:len(contents)-1] {
		if len(b) < limit || len(b) > limit+20 {
			t.Errorf("%s has %d bytes, want %d", names[i], len(b), limit)
		}
	}
	all := string(bytes.Join(contents, nil))
	for gang := range gangs {
		if last := fmt.Sprintf("line %2d of gang %d\n", rounds-1, gang); !strings.HasSuffix(all, last) && !strings.Contains(all, last+"line") {
			t.Errorf("no %q in %q", last, all)
		}
	}
	if len(sizedFiles.open) > 0 {
		t.Errorf("%d files stay open", len(sizedFiles.open))
	}
}

// TestLogFilesOfOneInstant: files that are rotated at the same time get different names, in their order.
func TestLogFilesOfOneInstant(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { // in which time stands still
		f, err := openLogFile(filepath.Join(dir, "stdout.log"), 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			if _, err := fmt.Fprintln(f, i); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if _, contents := stored(t, dir); len(contents) != 5 || string(bytes.Join(contents, nil)) != "0\n1\n2\n3\n4\n" {
		t.Errorf("the files hold %q", contents)
	}
}

func TestLogFileOfALineWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	f, err := openLogFile(filepath.Join(dir, "stdout.log"), 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	const total = 5 << 20
	for range total / readSize {
		if _, err := f.Write(bytes.Repeat([]byte("."), readSize)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, contents := stored(t, dir)
	var sizes []int
	for _, b := range contents {
		sizes = append(sizes, len(b))
	}
	const most = 100 + maxLine
	if want := []int{most, most, most, most, total - 4*most}; !slices.Equal(sizes, want) {
		t.Errorf("files of %d bytes, want %d", sizes, want)
	}
}

func TestLogFilesKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "stdout.log")
	for name, text := range map[string]string{ // what an earlier attempt and somebody else have left
		"stdout.log": "old 10\nold 11\n", "stdout-2020-01-02T03-04-05.000006-size.log": "old 9\n", "stdout-notes.log": "",
		"stderr-2020-01-02T03-04-05.000006-size.log": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := openLogFile(path, 5, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if _, err := fmt.Fprintf(f, "new %d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, regexp.MustCompile(`20.*-size`).ReplaceAllString(e.Name(), "TIME")+" "+string(b))
	}
	want := []string{"stderr-TIME.log ", "stdout-TIME.log new 1\n", "stdout-TIME.log new 2\n", "stdout-notes.log ", "stdout.log new 3\n"}
	if !slices.Equal(got, want) {
		t.Errorf("left are\n%q, want\n%q", got, want)
	}
}

func TestLogFileWithoutLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout.log")
	for range 2 {
		f, err := openLogFile(path, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(strings.Repeat("line\n", 1000))); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if names, contents := stored(t, filepath.Dir(path)); len(names) != 1 || len(contents[0]) != 10000 {
		t.Errorf("%v", names)
	}
}

// TestLogFileRemoved removes a log file that is being written, with its folder. No line is lost that comes after it was due to be rotated.
func TestLogFileRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rank")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "stdout.log")
	f, err := openLogFile(path, 5, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, "first"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, "second"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, contents := stored(t, dir); string(bytes.Join(contents, nil)) != "second\n" {
		t.Errorf("the files hold %q", contents)
	}
}
