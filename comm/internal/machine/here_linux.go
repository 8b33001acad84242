package machine

import (
	"os"
	"strconv"
	"strings"
)

// Here returns where this process runs.
func Here() (p Place, err error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Place{}, err
	}
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return Place{}, err
	}
	processes, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Place{}, err
	}
	return Place{Kernel: strings.TrimSpace(string(boot)), Network: network, Processes: processes}, nil
}

// HasProc reports whether /proc lists processes by the numbers of this process's namespace.
func HasProc() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
}
