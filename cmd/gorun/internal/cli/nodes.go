package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/launcher/topology"
)

func setNnodes(o *flags, s string) (err error) {
	o.minNodes, o.nnodes, err = parseNnodes(s)
	return err
}

// parseNnodes reads N or MIN:MAX.
func parseNnodes(s string) (least, most int, err error) {
	low, high, isRange := strings.Cut(s, ":")
	if !isRange {
		high = low
	}
	least, err1 := number(low, 1, maxNodes)
	most, err2 := number(high, 1, maxNodes)
	if err := errors.Join(err1, err2); err != nil || least > most {
		return 0, 0, fmt.Errorf("want a number of nodes from 1 to %d, or MIN:MAX with MIN at most MAX", maxNodes)
	}
	return least, most, nil
}

var procKinds = []string{"auto", "cpu", "gpu", "xpu"}

func setNproc(o *flags, s string) (err error) {
	switch s {
	case "auto", "gpu", "xpu":
		if o.nproc, err = countDevices(host{lookup: o.lookup, root: o.host.root}, s); o.nproc > 0 || err != nil {
			return err
		}
		if s != "auto" {
			return fmt.Errorf("there is no such device on this machine: want a number, or %s for one worker on each CPU", "cpu")
		}
		fallthrough
	case "cpu":
		o.nproc, err = topology.CPUCount(o.host.root)
		return err
	}
	if o.nproc, err = number(s, 1, maxProcs); err != nil {
		return fmt.Errorf("want a positive number, auto, cpu, gpu or xpu%s", didYouMean(s, procKinds))
	}
	return nil
}

// countDevices counts the devices of a kind that workers would see. auto is the first kind of which there are any.
func countDevices(h host, kind string) (n int, err error) {
	kinds := []string{kind}
	if kind == "auto" {
		kinds = []string{"gpu", "xpu"}
	}
	for _, k := range kinds {
		devices, err := topology.Accelerators(h.root, k, h.lookup)
		if err != nil || len(devices.Names) > 0 {
			return len(devices.Names), err
		}
	}
	return 0, nil
}

// commAddr is the variable that holds the address at which other ranks reach a worker. Package comm reads it; users and gorun set
// it.
const commAddr = "GORUN_COMM_ADDR"

// localAddr replaces an interface or a prefix with the address of this machine that it means. It keeps a name or an address as
// it is: behind address translation, it need not be an address of this machine.
func localAddr(s string) (string, error) {
	if !strings.Contains(s, "/") && !network.IsInterface(s) {
		return hostName(s)
	}
	found, err := network.ChooseAddr(context.Background(), s) // looks up no name
	return found.String(), err
}

// maxHost is how many bytes the name of a host may have, in DNS and in Linux.
const maxHost = 255

// hostName accepts a host name or an IP address, which may be in brackets.
func hostName(s string) (string, error) {
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
	}
	if s == "" || len(s) > maxHost || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("[]/", r) }) {
		return "", errors.New("want a host name or an IP address")
	}
	if _, err := netip.ParseAddr(s); err != nil && strings.Contains(s, ":") {
		return "", errors.New("want a host name or an IP address, without a port")
	}
	return s, nil
}

// statusAddr accepts a host and a port. Without a host it means loopback.
func statusAddr(s string) (string, error) {
	if !strings.Contains(s, ":") {
		s = ":" + s
	}
	host, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err == nil && host != "" {
		_, err = hostName("[" + host + "]")
	}
	if err != nil {
		return "", errors.New("want host:port, or :port for loopback")
	}
	if host == "" {
		host = network.Loopback().String()
	}
	return net.JoinHostPort(host, port), nil
}
