package launcher

import (
	"debug/elf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestExplain: what is known of a file says why the system does not execute it.
func TestExplain(t *testing.T) {
	elfOf := func(data byte, machine ...byte) []byte {
		return append([]byte("\x7fELF\x02"+string(data)+"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"), machine...)
	}
	for _, c := range []struct {
		name  string
		errno syscall.Errno
		facts facts
		want  string // the beginning
	}{
		{"no mode", syscall.EACCES, facts{mode: 0o644}, "it is not an executable file (chmod +x "},
		{"other user's", syscall.EACCES, facts{mode: 0o700}, "no permission"},
		{"noexec", syscall.EACCES, facts{mode: 0o755, noexec: true}, "its file system is mounted with noexec: "},
		{"noexec without mode", syscall.EACCES, facts{mode: 0o644, noexec: true}, "its file system is mounted with noexec: "},
		{"directory", syscall.EACCES, facts{mode: os.ModeDir | 0o755}, "it is a directory"},
		{"DOS", syscall.ENOENT, facts{head: []byte("#!/bin/bash\r\necho\r\n")}, `its lines end as on DOS, with a carriage return, so that it asks for the interpreter "/bin/bash\r": `},
		{"interpreter", syscall.ENOENT, facts{head: []byte("#! /opt/sh -e\n")}, `the interpreter "/opt/sh", which its first line names, does not exist`},
		{"interpreter alone", syscall.ENOENT, facts{head: []byte("#!/opt/sh")}, `the interpreter "/opt/sh"`},
		{"loader", syscall.ENOENT, facts{head: elfOf(1, 62, 0), loader: "/lib/ld-musl-x86_64.so.1"}, "its loader /lib/ld-musl-x86_64.so.1 does not exist here: "},
		{"ARM", syscall.ENOEXEC, facts{head: elfOf(1, 183, 0), machine: elf.EM_X86_64}, "it is a program for another processor: for AARCH64, and this machine has X86_64"},
		{"big-endian", syscall.ENOEXEC, facts{head: elfOf(2, 0, 21), machine: elf.EM_X86_64}, "it is a program for another processor: for PPC64, "},
		{"broken", syscall.ENOEXEC, facts{head: elfOf(1, 62, 0), machine: elf.EM_X86_64}, "neither a program for this machine "},
		{"cut", syscall.ENOEXEC, facts{head: []byte("\x7fELF"), machine: elf.EM_X86_64}, "neither a program "},
		{"empty", syscall.ENOEXEC, facts{}, "it is empty"},
		{"text", syscall.ENOEXEC, facts{head: []byte("echo\n")}, "neither a program "},
		{"no interpreter", syscall.ENOEXEC, facts{head: []byte("#!\necho\n")}, "neither a program for this machine nor a script that begins with #! and the path of its interpreter"},
		{"Windows", syscall.ENOEXEC, facts{head: []byte("MZ\x90")}, "it is a program for Windows"},
		{"macOS", syscall.ENOEXEC, facts{head: []byte("\xcf\xfa\xed\xfe")}, "it is a program for macOS"},
		{"arguments", syscall.E2BIG, facts{head: []byte("#!/bin/sh\n")}, "its arguments and environment are too long"},
	} {
		if got := c.facts.explain(c.errno); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestNoexec: nothing on a file system that is mounted with noexec can be executed, and the error says so: of a program, by its path or in
// PATH, of an interpreter, and of Go programs that gorun would build there.
func TestNoexec(t *testing.T) {
	testkit.SmallDisk(t, func(t *testing.T, dir string) {
		program := filepath.Join(dir, "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_NOEXEC, ""); err != nil {
			testkit.Cannot(t, "cannot mount with noexec: %v", err)
		}
		t.Chdir(t.TempDir())
		t.Setenv("PATH", dir)
		const want = "/program cannot be executed: its file system is mounted with noexec"
		for _, target := range []string{program, "program"} {
			if _, err := Python("").Resolve(target, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", target, err)
			}
		}
		s, _ := spec(t, 1)
		s.Argv = []string{program}
		if _, err := Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
		if err := os.WriteFile("script", []byte("#!"+program+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		s.Argv = []string{"./script"}
		if _, err := Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "so its interpreter \""+program+"\", which its first line names, cannot: its file system") {
			t.Error(err)
		}
		err := source("./x.go", nil).Build(t.Context(), filepath.Join(dir, "new"), io.Discard)
		if _, ok := errors.AsType[*BuildError](err); !ok || !strings.Contains(err.Error(), "mounted with noexec") || !strings.Contains(err.Error(), "set TMPDIR") {
			t.Error(err)
		}
	})
}
