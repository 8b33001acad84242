package attack

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Ports are those where a process and its descendants listen.
func Ports(pid int) (ports []Port) {
	listening := make(map[string]Port)
	for _, name := range []string{"tcp", "tcp6"} {
		for _, f := range table("/proc/net/" + name) {
			if len(f) > 9 && f[3] == "0A" {
				if a := address(f[1]); a != "" {
					listening["socket:["+f[9]+"]"] = Port{"tcp", a}
				}
			}
		}
	}
	for _, f := range table("/proc/net/unix") {
		if len(f) > 7 && f[3] == "00010000" {
			listening["socket:["+f[6]+"]"] = Port{"unix", f[7]}
		}
	}
	for _, p := range family(pid) {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p))
		for _, link := range links {
			to, _ := os.Readlink(link)
			if port, ok := listening[to]; ok {
				delete(listening, to)
				ports = append(ports, port)
			}
		}
	}
	return ports
}

func table(name string) (lines [][]string) {
	text, _ := os.ReadFile(name)
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// address reads one as the kernel prints it: 0100007F:1F90.
func address(text string) string {
	host, port, _ := strings.Cut(text, ":")
	ip, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil {
		return ""
	}
	for i := 0; i+4 <= len(ip); i += 4 {
		ip[i], ip[i+1], ip[i+2], ip[i+3] = ip[i+3], ip[i+2], ip[i+1], ip[i]
	}
	if net.IP(ip).IsUnspecified() {
		ip = net.IPv4(127, 0, 0, 1)
	}
	return net.JoinHostPort(net.IP(ip).String(), strconv.FormatUint(n, 10))
}

// family is a process and its descendants.
func family(pid int) []int {
	children := make(map[int][]int)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, _ := os.ReadFile(name)
		line := string(text)
		fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		self, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], self)
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}
