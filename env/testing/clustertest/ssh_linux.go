package clustertest

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/hosttest"
	"github.com/gorun/gorun/env/testing/testkit"
)

// A HostsConfig describes hosts.
type HostsConfig struct {
	Hosts  int
	Shells []string // the login shells of the first hosts, such as tcsh; the others have sh
}

// Hosts are machines of hosttest, each with an sshd. They are reached from Client as root by "ssh h1", "ssh h2" and so on. They end with their test, and so does everything that they run.
type Hosts struct {
	Client *hosttest.Machine   // its root has the key in ~/.ssh, and knows the keys of all hosts
	List   []*hosttest.Machine // h1, h2, ...

	dir  string
	temp string // $TMPDIR of all that runs on the hosts
}

// StartHosts starts hosts, and returns when each of them listens.
func StartHosts(t testing.TB, c HostsConfig) *Hosts {
	t.Helper()
	hosttest.Need(t, "sshd", "openssh-server")
	hosttest.Need(t, "ssh", "openssh-client")
	temp, err := os.MkdirTemp("", "ssh") //nolint:usetesting // shorter than t's: the path of a socket may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) }) // after the hosts have ended
	machines := []hosttest.Config{{Name: "client"}}
	for i := range c.Hosts {
		m := hosttest.Config{Name: fmt.Sprint("h", i+1)}
		if i < len(c.Shells) {
			m.Shell = hosttest.Need(t, c.Shells[i], c.Shells[i])
		}
		machines = append(machines, m)
	}
	booted := hosttest.NewMachines(t, machines...)
	h := &Hosts{Client: booted[0], List: booted[1:], dir: t.TempDir(), temp: temp}
	for _, key := range []string{"id", "host"} {
		h.Client.Run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", h.path(key))
	}
	h.write(t, "sshd_config", h.serverConfig())
	hostKey, err := os.ReadFile(h.path("host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	var known strings.Builder
	for _, m := range h.List {
		fmt.Fprintf(&known, "%s,%s %s", m.Name, m.Addr, hostKey)
	}
	h.write(t, "known_hosts", known.String())
	h.Client.Run(t, "sh", "-c", `mkdir -m 700 ~/.ssh && cp "$0"/known_hosts ~/.ssh/ && cp "$0"/id ~/.ssh/id_ed25519`, h.dir)
	for i := range h.List {
		h.StartSSHD(t, i)
	}
	return h
}

func (h *Hosts) serverConfig() string {
	lines := []string{
		"Port 22", "HostKey " + h.path("host"), "AuthorizedKeysFile " + h.path("id.pub"), "PidFile none", "StrictModes no", "UsePAM no",
		"PermitRootLogin prohibit-password", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PrintMotd no",
		"SetEnv TMPDIR=" + h.temp, "MaxStartups 100", // as tests launch many jobs at a time
	}
	return strings.Join(lines, "\n") + "\n"
}

func (h *Hosts) path(name string) string { return filepath.Join(h.dir, name) }

func (h *Hosts) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(h.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// StartSSHD starts the sshd of host i, from 0, and returns when it listens. After StartHosts, this is for a host that was killed and booted.
func (h *Hosts) StartSSHD(t testing.TB, i int) {
	t.Helper()
	m := h.List[i]
	cmd := m.Command(hosttest.Need(t, "sshd", "openssh-server"), "-D", "-e", "-f", h.path("sshd_config"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	m.StartDaemon(t, cmd)
	_ = w.Close()
	lines := bufio.NewScanner(r)
	var said testkit.Log
	for !strings.Contains(lines.Text(), "listening on") {
		if !lines.Scan() {
			t.Fatalf("the sshd of %s ends: %s", m.Name, said.String())
		}
		fmt.Fprintln(&said, lines.Text())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("sshd of %s:\n%s", m.Name, said.String())
		}
	})
	go func() {
		for lines.Scan() { // until the host is killed
			fmt.Fprintln(&said, lines.Text())
		}
		_ = r.Close()
	}()
}
