package clustertest

import (
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/hosttest"
)

func TestShells(t *testing.T) {
	t.Parallel()
	shells := []string{"sh", "bash", "tcsh", "fish"}
	begun := time.Now()
	h := StartHosts(t, HostsConfig{Hosts: 5, Shells: shells})
	t.Logf("5 hosts are up after %v", time.Since(begun))
	for i, m := range h.List {
		want := "sh"
		if i < len(shells) {
			want = shells[i]
		}
		got := h.Client.Run(t, "ssh", m.Name, "hostname; pwd; sh -c 'cat /proc/$PPID/comm'; true")
		if want := m.Name + "\n" + hosttest.Home + "\n" + want; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLostHosts(t *testing.T) {
	t.Parallel()
	h := StartHosts(t, HostsConfig{Hosts: 2, MaxStartups: "2:100:2"})
	ssh := func(host string, options ...string) string {
		return h.Client.Run(t, "sh", "-c", "ssh "+strings.Join(options, " ")+" "+host+" true 2>&1; echo exit $?")
	}
	h.List[0].Cut()
	if got := ssh("h1", "-o ConnectTimeout=1"); !strings.Contains(got, "timed out") {
		t.Errorf("a host that is cut off: %s", got)
	}
	h.List[0].Heal()
	h.List[0].Kill()
	h.List[0].Boot(t)
	if got := ssh("h1"); !strings.Contains(got, "refused") {
		t.Errorf("a host without sshd: %s", got)
	}
	h.StartSSHD(t, 0)
	for _, host := range []string{"h1", "h2"} {
		if got := ssh(host); got != "exit 0" {
			t.Errorf("%s: %s", host, got)
		}
	}
	// With two connections that have said nothing, sshd takes no third.
	silent := h.Client.Command("sh", "-c", `exec bash -c 'exec 3<>/dev/tcp/h2/22 4<>/dev/tcp/h2/22; read -r <&3; read -r <&4; echo; read -r _'`)
	in, err := silent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := silent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Client.Start(silent); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if got := ssh("h2"); got == "exit 0" {
		t.Error("sshd takes more connections than MaxStartups")
	}
}
