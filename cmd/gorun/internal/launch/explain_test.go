package launch

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/env/manager"
)

func TestFailureOfConnection(t *testing.T) {
	h := manager.Host{Name: "n1"}
	for _, c := range []struct {
		e    ending
		code int
		want string
	}{
		{ending{code: 255, stderr: "banner\nroot@n1: Permission denied (publickey,password).\r\n"}, 2,
			"host n1: connecting: root@n1: Permission denied (publickey,password).: gorun does not ask for passwords: let ssh log in with a key (ssh-copy-id, ssh-agent)"},
		{ending{code: 255, stderr: "No ED25519 host key is known for n1.\nHost key verification failed.\n"}, 2,
			"host n1: connecting: Host key verification failed.: check the host's key and accept it once: run ssh n1 true"},
		{ending{code: 255, stderr: "ssh: connect to host n1 port 22: No route to host"}, 75,
			"host n1: connecting: ssh: connect to host n1 port 22: No route to host: check that the host is up, and the network"},
		{ending{code: 255, stderr: "something new\n"}, 75, "host n1: connecting: something new"},
		{ending{code: 255}, 75, "host n1: connecting: ssh failed, and did not say why"},
		{ending{code: 127, stderr: "bash: line 1: exec: /opt/gorun: not found"}, 2,
			"host n1: starting gorun: no gorun at /opt/gorun there: install it, say where it is with --remote-path, or let --copy copy it"},
		{ending{code: 1, stderr: "/opt/gorun: Command not found."}, 2, // tcsh
			"host n1: starting gorun: no gorun at /opt/gorun there: install it, say where it is with --remote-path, or let --copy copy it"},
		{ending{code: 126, stderr: "sh: 1: exec: /opt/gorun: Permission denied\n"}, 2,
			"host n1: starting gorun: /opt/gorun cannot be executed there: sh: 1: exec: /opt/gorun: Permission denied: check its mode, its architecture, and that its file system is not mounted noexec"},
		{ending{code: 126, stderr: "fish: Unknown command. '/opt/gorun' exists but is not an executable file.\nexec /opt/gorun agent\n     ^~~~~~~~~^\n"}, 2,
			"host n1: starting gorun: /opt/gorun cannot be executed there: fish: Unknown command. '/opt/gorun' exists but is not an executable file.: check its mode, its architecture, and that its file system is not mounted noexec"},
		{ending{code: 1, stderr: ".bashrc: line 7: module: command not found\n"}, 2,
			`host n1: starting gorun: /opt/gorun ended with exit code 1 before it said anything; on stderr: ".bashrc: line 7: module: command not found"`},
		{ending{code: -1, noise: "\x00\x00", err: &frame.NoiseError{Err: errors.New("nothing from gorun after 65536 bytes of other output")}}, 2,
			`host n1: starting gorun: /opt/gorun is no gorun of this version, or the login shell prints too much: nothing from gorun after 65536 bytes of other output; on stdout: "��"`},
		{ending{code: 255, stderr: "Cannot execute command-line and remote command.\n"}, 2,
			`host n1: connecting: Cannot execute command-line and remote command.: give this host no RemoteCommand in ~/.ssh/config, or use --rsh "ssh -o RemoteCommand=none"`},
		{ending{code: 3, noise: "Welcome\nto n1\n", stderr: "no libc\n"}, 2,
			`host n1: starting gorun: /opt/gorun ended with exit code 3 before it said anything; on stdout: "to n1"; on stderr: "no libc"`},
		{ending{code: 0, noise: "usage: gorun\n"}, 2, `host n1: starting gorun: /opt/gorun is no gorun of this version; on stdout: "usage: gorun"`},
		{ending{code: -1}, 75, "host n1: starting gorun: the remote shell was killed"},
		{ending{code: 137}, 75, "host n1: starting gorun: the remote shell was killed"},
		{ending{hello: true, code: 255, stderr: "Timeout, server n1 not responding.\n"}, 1,
			"host n1: running the job: the host is lost: the connection has ended: Timeout, server n1 not responding."},
		{ending{hello: true, code: 0, err: io.ErrUnexpectedEOF}, 1, "host n1: running the job: the host is lost: the connection has ended"},
		{ending{hello: true, code: 0, err: errors.New("a frame of kind 77, which does not exist")}, 1,
			"host n1: running the job: the connection was broken: a frame of kind 77, which does not exist"},
	} {
		got := c.e.failure(h, "/opt/gorun")
		if got.Error() != c.want || got.Code != c.code {
			t.Errorf("%+v:\n got %d %s\nwant %d %s", c.e, got.Code, got, c.code, c.want)
		}
	}
	if got := cut("\x1b[31m1.0\nsecond line"); got != "\uFFFD[31m1.0\uFFFDsecond line" {
		t.Errorf("%q", got)
	}
	if got := cut(strings.Repeat("é", 1000)); len(got) > maxLine+6 || strings.ContainsRune(got[:maxLine-2], '\uFFFD') {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestFailureOfCopy(t *testing.T) {
	answer := errors.New("the host has not answered as expected: EOF")
	for _, c := range []struct {
		u    failedCopy
		code int
		want string
	}{
		{failedCopy{begun: true, sent: 12_345_678, code: 255, err: answer}, 75,
			"host n1: copying gorun: the connection was lost after 12 of 47 MB: check that the host is up, and the network, and start the job again"},
		{failedCopy{begun: true, code: 255, stderr: "Timeout, server n1 not responding.\r\n", err: answer}, 75,
			"host n1: copying gorun: the connection was lost after 0 of 47 MB (Timeout, server n1 not responding.): check that the host is up, and the network, and start the job again"},
		{failedCopy{begun: true, sent: 1_000_000, code: -1, err: answer}, 75,
			"host n1: copying gorun: the connection was lost after 1 of 47 MB: check that the host is up, and the network, and start the job again"},
		{failedCopy{code: 255, stderr: "ssh: connect to host n1 port 22: No route to host", err: answer}, 75,
			"host n1: connecting: ssh: connect to host n1 port 22: No route to host: check that the host is up, and the network"},
		{failedCopy{begun: true, sent: 12_345_678, stderr: "Terminated", err: errStalled}, 75,
			"host n1: copying gorun: nothing came for 20s after 12 of 47 MB, and the host gave it up: check the network, and start the job again"},
		{failedCopy{begun: true, code: -1, misfit: true, err: errors.New("the host is linux/riscv64")}, 2, "host n1: copying gorun: the host is linux/riscv64"},
		{failedCopy{begun: true, code: 1, stderr: "it is a directory: remove it\n", err: answer}, 2, "host n1: copying gorun: ~/.cache/gorun/1-2/gorun: it is a directory: remove it"},
		{failedCopy{begun: true, err: answer}, 2, "host n1: copying gorun: ~/.cache/gorun/1-2/gorun: the host has not answered as expected: EOF"},
	} {
		c.u.size, c.u.stall = 46_800_000, 20*time.Second
		if got := c.u.failure(manager.Host{Name: "n1"}, "~/.cache/gorun/1-2/gorun"); got.Error() != c.want || got.Code != c.code {
			t.Errorf("%+v:\n got %d %s\nwant %d %s", c.u, got.Code, got, c.code, c.want)
		}
	}
}

// TestNeedsCopy: a copy helps against what was left after a power failure, and not against a connection that fails.
func TestNeedsCopy(t *testing.T) {
	for e, want := range map[ending]bool{
		{code: 127, stderr: "sh: 1: exec: gorun: not found"}: true,
		{code: 0}:   true, // an empty file is a script
		{code: -1}:  true, // a file that is cut off gets a signal, and so does the shell that it has replaced
		{code: 255}: true, // the same over ssh
		{code: 255, stderr: "ssh: connect to host n1: No route to host"}: false,
		{hello: true, code: 1}:   false,
		{hello: true, code: 255}: false,
	} {
		if got := e.needsCopy(); got != want {
			t.Errorf("%+v: %v", e, got)
		}
	}
}

func TestShell(t *testing.T) {
	ssh := Shell{Words: []string{"/usr/bin/ssh", "-F", "config"}, Connect: 90 * time.Second}
	want := []string{"/usr/bin/ssh", "-F", "config", "-T", "-oBatchMode=yes", "-oConnectTimeout=90", "-oServerAliveInterval=5", "-oServerAliveCountMax=3", "-l", "me", "n1", "exec gorun agent"}
	if got := ssh.Argv(manager.Host{Name: "n1", User: "me"}, ProxyCommand("gorun")); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := (Shell{Words: []string{"oarsh"}}).Argv(manager.Host{Name: "n1"}, "x"); !slices.Equal(got, []string{"oarsh", "n1", "x"}) {
		t.Errorf("got %q", got)
	}
	for path, want := range map[string]bool{
		"/usr/local/bin/gorun": true, "gorun": true, "~/bin/gorun-0.1": true, "bin/gorun": true, "/opt/a b/gorun": false, "/opt/$x/gorun": false, "": false,
		"-x": false, "~you/gorun": false, "/opt/!x": false, "/opt/a;b": false, "/opt/gorun\n": false, "/opt//gorun": false, "/opt/gorun/": false,
	} {
		if err := CheckPath(path); (err == nil) != want {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestEnviron(t *testing.T) {
	got := Environ([]string{"PATH=/bin", "NCCL_DEBUG=INFO", "GORUN_TOKEN=secret", "GORUN_KERNELS=avx2", "GORUN_COMM_ADDR=10.0.0.1", "LANG=C", "LANGUAGE=de",
		"PET_NODE_RANK=3", "PET_MAX_RESTARTS=2", "OMP_NUM_THREADS=", "CUDA_VISIBLE_DEVICES=1", "RANK=3", "PYTHONPATH=/x", "odd"})
	want := []string{"NCCL_DEBUG=INFO", "GORUN_KERNELS=avx2", "LANG=C", "PET_MAX_RESTARTS=2", "OMP_NUM_THREADS=", "PYTHONPATH=/x"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestCopyCommand: a binary takes its place when all of it has come, and not before, whatever shell runs the command.
func TestCopyCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gorun")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho it runs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"sh", "bash", "tcsh", "fish"} {
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("without %s", shell)
			continue
		}
		home := t.TempDir()
		c, err := NewCopy("1.0+a b!", file)
		if err != nil {
			t.Fatal(err)
		}
		path := c.Path
		if !strings.HasPrefix(path, "~/.cache/gorun/1.0+a_b_-") || CheckPath(path) != nil {
			t.Fatalf("path %s", path)
		}
		there := filepath.Join(home, strings.TrimPrefix(path, "~/"))
		run := func(stdin string) string {
			cmd := exec.Command(shell, "-c", c.command(time.Minute))
			cmd.Env, cmd.Stdin = append(os.Environ(), "HOME="+home), strings.NewReader(stdin)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v: %s", shell, err, out)
			}
			return string(out)
		}
		said := run(string(binary[:10]))
		if entries, err := os.ReadDir(filepath.Dir(there)); err != nil || len(entries) != 0 || strings.Contains(said, "done") {
			t.Errorf("%s: after a part of it: %v, %v; it says %s", shell, entries, err, said)
		}
		// A disk that is full: a limit of the file's length looks the same to cat.
		if out, err := exec.Command("sh", "-c", `trap "" XFSZ; ulimit -f 1; head -c 4096 /dev/zero | HOME=$0 "$1" -c "$2"`, home, shell, c.command(time.Minute)).CombinedOutput(); strings.Contains(string(out), "done\n") {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
		if entries, err := os.ReadDir(filepath.Dir(there)); err != nil || len(entries) != 0 {
			t.Errorf("%s: after a write that failed: %v, %v", shell, entries, err)
		}
		said = run(string(binary))
		r := bufio.NewReader(strings.NewReader("Welcome\n" + said))
		words, err := awaitWords(r, copyMark)
		if err != nil || len(words) != 2 || fits(words[0], words[1]) != nil {
			t.Errorf("%s: %q, %v", shell, words, err)
		}
		if _, err := awaitWords(r, "done"); err != nil {
			t.Errorf("%s: %v in %s", shell, err, said)
		}
		if out, err := exec.Command(there).CombinedOutput(); err != nil || string(out) != "it runs\n" {
			t.Errorf("%s: %s, %v", shell, out, err)
		}
		if entries, err := os.ReadDir(filepath.Dir(there)); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v, %v", shell, entries, err)
		}
	}
	if err := fits("Linux", "riscv64"); err == nil || !strings.Contains(err.Error(), "the host is linux/riscv64, and this gorun is for ") {
		t.Errorf("%v", err)
	}
}
