// Package hosts provides hosts on this machine: network namespaces on a bridge, each with its own host name, which
// can be cut off.
package hosts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
)

// A Network has a namespace for each host, and one for the bridge that connects them. The namespaces disappear with
// their processes.
type Network struct {
	bridge   *exec.Cmd // a shell that runs commands next to the bridge
	commands io.WriteCloser
	answers  *bufio.Scanner
	starts   map[int]int  // of each host
	isolated map[int]bool // hosts that cannot reach each other
}

// Addr is the address of a host, which is a number from -99 to 154.
func Addr(host int) string { return fmt.Sprintf("10.77.0.%d", host+100) }

// An UnavailableError says what this machine lacks.
type UnavailableError struct{ Why string }

func (e *UnavailableError) Error() string { return e.Why }

func unavailable(err error) error {
	return &UnavailableError{fmt.Sprintf("cannot create network namespaces (%v): this needs root, or unshare --map-root-user, and the command ip", err)}
}

// New makes the bridge.
func New() (*Network, error) {
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, unavailable(err)
	}
	n := &Network{starts: make(map[int]int), isolated: make(map[int]bool), bridge: exec.Command("sh", "-c", `while read -r line; do eval "$line" 2>&1 | tr '\n' ' '; echo; done`)}
	n.bridge.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNET} // it ends with its input
	var err error
	if n.commands, err = n.bridge.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := n.bridge.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.answers = bufio.NewScanner(out)
	if err := n.bridge.Start(); err != nil {
		return nil, unavailable(err)
	}
	if err := n.do("ip link add bridge type bridge && ip link set bridge up"); err != nil {
		n.Close()
		return nil, unavailable(err)
	}
	return n, nil
}

// do runs a command that prints nothing if it succeeds.
func (n *Network) do(command string) error {
	if _, err := fmt.Fprintln(n.commands, command); err != nil {
		return err
	}
	if !n.answers.Scan() {
		return errors.Join(io.ErrUnexpectedEOF, n.answers.Err())
	}
	if complaint := strings.TrimSpace(n.answers.Text()); complaint != "" {
		return errors.New(complaint)
	}
	return nil
}

// Start starts a command on a host, which must be new or have no processes left. It connects the host. From the
// second time on the host has another name, as a pod that is replaced: gorun keeps a host out whose nodes come and
// go.
func (n *Network) Start(cmd *exec.Cmd, host int) error {
	const connected = `ip link set lo up && read -r name addr && { hostname "$name" || echo "$name" >/proc/sys/kernel/hostname; } 2>/dev/null && ip addr add "$addr" dev eth0 && ip link set eth0 up && exec "$@" </dev/null`
	cmd.Args = append([]string{"sh", "-c", connected, "sh", cmd.Path}, cmd.Args[1:]...)
	sh, err := exec.LookPath("sh")
	if err != nil {
		return err
	}
	cmd.Path = sh
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	link := linkOf(host)
	// What is left of a host whose processes have ended goes, but not at once.
	err = n.do(fmt.Sprintf("ip link del %[1]s 2>/dev/null; ip link add %[1]s type veth peer name eth0 netns %[2]d && ip link set %[1]s master bridge up && %[3]s", link, cmd.Process.Pid, n.isolation(host)))
	if err == nil {
		n.starts[host]++
		name := link
		if n.starts[host] > 1 {
			name = fmt.Sprint(link, "-", n.starts[host])
		}
		_, err = fmt.Fprintf(in, "%s %s/24\n", name, Addr(host))
	}
	if err = errors.Join(err, in.Close()); err != nil {
		_, _ = cmd.Process.Kill(), cmd.Wait()
	}
	return err
}

func linkOf(host int) string { return fmt.Sprint("host", host+1) }

// Cut cuts a host off. What is sent to it, or by it, is lost.
func (n *Network) Cut(host int) error { return n.do("ip link set " + linkOf(host) + " down") }

// Heal connects it again.
func (n *Network) Heal(host int) error { return n.do("ip link set " + linkOf(host) + " up") }

// CutInbound loses all that is sent to a host, but nothing that it sends.
func (n *Network) CutInbound(host int) error {
	return n.setInbound(host, "off", fmt.Sprintf(" && ip link set %s type bridge_slave fdb_flush", linkOf(host)))
}

// HealInbound undoes CutInbound.
func (n *Network) HealInbound(host int) error { return n.setInbound(host, "on", "") }

// setInbound has the bridge pass frames on to a host: those for everybody, and those for which the bridge does not
// know where they belong. If it does not learn where the host is, these are all.
func (n *Network) setInbound(host int, onOff, then string) error {
	return n.do(fmt.Sprintf("ip link set %s type bridge_slave learning %[2]s flood %[2]s mcast_flood %[2]s bcast_flood %[2]s%[3]s", linkOf(host), onOff, then))
}

// Isolate separates hosts from each other and from all hosts isolated before, but from no others: what one of them
// sends to another is lost. The hosts may be started later.
func (n *Network) Isolate(list ...int) error { return n.setIsolated(list, true) }

// Rejoin lets them reach each other again.
func (n *Network) Rejoin(list ...int) error { return n.setIsolated(list, false) }

func (n *Network) setIsolated(list []int, on bool) error {
	for _, host := range list {
		n.isolated[host] = on
		if n.starts[host] == 0 {
			continue
		}
		if err := n.do(n.isolation(host)); err != nil {
			return err
		}
	}
	return nil
}

// isolation returns the command that makes the bridge pass nothing between isolated hosts. A host whose processes
// have ended has no link any more, and is isolated when it is started again.
func (n *Network) isolation(host int) string {
	how := "off"
	if n.isolated[host] {
		how = "on"
	}
	return fmt.Sprintf("{ ip link set %[1]s type bridge_slave isolated %[2]s 2>/dev/null || ! ip link show %[1]s >/dev/null 2>&1 || echo cannot isolate %[1]s; }", linkOf(host), how)
}

// Close ends the process that holds the bridge.
func (n *Network) Close() {
	if n != nil {
		_ = n.commands.Close()
		_ = n.bridge.Wait() // how it ends is of no consequence
	}
}
