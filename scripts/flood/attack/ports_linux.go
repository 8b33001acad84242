package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Ports returns the ports where a process and its descendants listen.
func Ports(pid int) (ports []Port) {
	listening := make(map[string]Port)
	for _, family := range []byte{syscall.AF_INET, syscall.AF_INET6, syscall.AF_UNIX} {
		for _, l := range listeners(family) {
			listening[fmt.Sprintf("socket:[%d]", l.inode)] = l.port
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

// family returns a process and its descendants.
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
