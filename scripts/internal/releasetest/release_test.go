// Package releasetest_test tests what makes releases, and that others can install gorun from them and from its source.
package releasetest_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// version is what the committed code says, which a release must say too.
func version(t *testing.T) string {
	t.Helper()
	code := command(t, "git", "show", "HEAD:cmd/gorun/internal/release/release.go")
	_, rest, _ := strings.Cut(code, "\nconst Version = \"")
	version, _, found := strings.Cut(rest, "\"\n")
	if !found {
		t.Fatal("release.go does not say the version")
	}
	return version
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// TestRelease makes a release for Linux on arm64, which scripts/check builds nowhere else.
func TestRelease(t *testing.T) {
	testkit.Nightly(t, "compiles gorun for another platform")
	version, dir := version(t), t.TempDir()
	t.Log(command(t, "../../release", "--output", dir, "--platform", "linux/arm64", version))
	name := "gorun-" + version + "-linux-arm64"
	want, sums := []string{name + ".modules.txt", name + ".tar.gz"}, checksums(t, dir)
	for _, file := range want {
		if sums[file] == "" {
			t.Errorf("SHA256SUMS lacks %s", file)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(want)+1 || len(sums) != len(want) {
		t.Errorf("the release has %v, %v, with checksums of %v", entries, err, sums)
	}

	files := unpack(t, filepath.Join(dir, name+".tar.gz"))
	for _, file := range []string{
		"bin/gorun", "share/man/man1/gorun.1", "share/bash-completion/completions/gorun", "share/zsh/site-functions/_gorun",
		"share/fish/vendor_completions.d/gorun.fish", "share/doc/gorun/LICENSE", "share/doc/gorun/LICENSE.go", "share/doc/gorun/README.md",
		"share/doc/gorun/modules/go.etcd.io/etcd/server/v3/LICENSE",
	} {
		if len(files[path.Join(name, file)]) == 0 {
			t.Errorf("the archive lacks %s", file)
		}
	}
	binary := files[path.Join(name, "bin/gorun")]

	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit := strings.TrimSpace(command(t, "git", "rev-parse", "HEAD"))
	if info.Main.Version != "v"+version || settings["vcs.revision"] != commit || settings["vcs.modified"] != "false" || settings["CGO_ENABLED"] != "0" {
		t.Errorf("the binary says it is %s, with %v, want v%s of commit %s", info.Main.Version, settings, version, commit)
	}
	wantBill(t, filepath.Join(dir, name+".modules.txt"), info)

	emulator, err := exec.LookPath("qemu-aarch64-static")
	if err != nil && runtime.GOARCH != "arm64" {
		testkit.Cannot(t, "nothing here runs a program for arm64: apt-get install qemu-user-static")
	}
	file := filepath.Join(dir, "gorun")
	if err := os.WriteFile(file, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	run := []string{file, "version", "--json"}
	if runtime.GOARCH != "arm64" {
		run = append([]string{emulator}, run...)
	}
	var said struct{ Version, Commit, Date, OS, Arch string }
	if out := command(t, run[0], run[1:]...); json.Unmarshal([]byte(out), &said) != nil ||
		said.Version != version || said.Commit != commit || said.Date == "" || said.OS != "linux" || said.Arch != "arm64" {
		t.Errorf("it says of itself: %s", out)
	}
}

// TestReleaseRefuses: a release has the version that agents compare.
func TestReleaseRefuses(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "no version"},
		{[]string{"999.0.0"}, "version 999.0.0: the code says " + version(t)},
		{[]string{"--all", "1.0.0"}, "no flag --all"},
		{[]string{"1.0.0", "--output"}, "--output lacks its value"},
		{[]string{"1.0.0", "1.0.1"}, "two versions"},
	} {
		cmd := exec.CommandContext(t.Context(), "../../release", tt.args...)
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "scripts/release: "+tt.want) {
			t.Errorf("%v: %v, want exit code 2 and %q:\n%s", tt.args, err, tt.want, out)
		}
	}
}

// checksums returns those that SHA256SUMS has, by file, when it has compared them with the files.
func checksums(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.Open(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	sums := make(map[string]string)
	for lines := bufio.NewScanner(list); lines.Scan(); {
		sum, file, _ := strings.Cut(lines.Text(), "  ")
		content, err := os.ReadFile(filepath.Join(dir, file))
		if got := sha256.Sum256(content); err != nil || hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s: %v, has the checksum %x, and SHA256SUMS says %s", file, err, got, sum)
		}
		sums[file] = sum
	}
	return sums
}

// unpack returns the files of an archive that are not empty, by name. Everybody may read all of them.
func unpack(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode&0o444 != 0o444 || h.Uid != 0 || path.Base(h.Name) == "gorun" && path.Base(path.Dir(h.Name)) == "bin" && h.Mode&0o777 != 0o755 {
			t.Errorf("%s has mode %o and belongs to %d", h.Name, h.Mode, h.Uid)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// wantBill checks that a bill of materials lists every module of a binary.
func wantBill(t *testing.T, file string, info *buildinfo.BuildInfo) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range info.Deps {
		if !strings.Contains(string(text), "\tdep\t"+d.Path+"\t"+d.Version+"\t"+d.Sum) {
			t.Errorf("the bill lacks %s %s", d.Path, d.Version)
		}
	}
}
