package network

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Interface is a network interface of this machine.
type Interface struct {
	Name       string
	Addrs      []netip.Addr // in the kernel's order, but for those that have no meaning beyond a link
	Up         bool
	Loopback   bool
	Containers bool // it leads to containers of this machine and nowhere else
}

// best returns the first IPv4 address, or else the first address.
func (i Interface) best() netip.Addr {
	if v4 := slices.IndexFunc(i.Addrs, netip.Addr.Is4); v4 >= 0 {
		return i.Addrs[v4]
	}
	if len(i.Addrs) > 0 {
		return i.Addrs[0]
	}
	return netip.Addr{}
}

func has(list []Interface, a netip.Addr) bool {
	for _, i := range list {
		if slices.Contains(i.Addrs, a.WithZone("")) || i.Loopback && a.IsLoopback() {
			return true
		}
	}
	return false
}

// describe lists the addresses of interfaces in words.
func describe(list []Interface) string {
	var words []string
	for _, i := range list {
		for _, a := range i.Addrs {
			words = append(words, fmt.Sprintf("%v (%s)", a, i.Name))
		}
	}
	if len(words) == 0 {
		return "no address"
	}
	return strings.Join(words, ", ")
}

func interfaces() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	list := make([]Interface, len(all))
	for n, i := range all {
		list[n] = Interface{
			Name: i.Name, Up: i.Flags&net.FlagUp != 0, Loopback: i.Flags&net.FlagLoopback != 0, Containers: leadsToContainers("/sys/class/net", i.Name),
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if ip := p.Addr().Unmap(); err == nil && (ip.IsGlobalUnicast() || ip.IsLoopback()) {
				list[n].Addrs = append(list[n].Addrs, ip)
			}
		}
	}
	return list, nil
}

// ofContainers are the prefixes of the names of interfaces that lead to containers, where the system does not say what they lead
// to.
var ofContainers = []string{"docker", "podman", "cni", "flannel", "cali", "kube-", "nodelocaldns", "virbr", "lxcbr", "lxdbr", "veth"}

// leadsToContainers reports whether an interface leads only to containers or virtual machines of this machine: it is a bridge
// without an attached device, or its name says so.
func leadsToContainers(class, name string) bool {
	if _, err := os.Stat(filepath.Join(class, name, "bridge")); err != nil {
		return slices.ContainsFunc(ofContainers, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	ends, _ := os.ReadDir(filepath.Join(class, name, "brif"))
	return !slices.ContainsFunc(ends, func(end os.DirEntry) bool { return isOfDevice(filepath.Join(class, end.Name())) })
}

// isOfDevice reports whether the interface that the system describes at dir belongs to a device, directly or as a VLAN.
func isOfDevice(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "device"))
	below, _ := filepath.Glob(filepath.Join(dir, "lower_*"))
	return err == nil || len(below) > 0
}
