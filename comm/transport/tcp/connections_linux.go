package tcp

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// measure finds out what can be of the way that c takes, which has just been connected.
func measure(c *net.TCPConn) way {
	w := way{window: min(largest("tcp_rmem"), largest("tcp_wmem"))}
	if local, ok := c.LocalAddr().(*net.TCPAddr); ok {
		w.rate = rateOf(local.IP)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return w
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			w.rtt = time.Duration(info.Rtt) * time.Microsecond
		}
	})
	return w
}

// largest is to how many bytes the kernel lets a buffer of a connection grow.
func largest(name string) int {
	text, _ := os.ReadFile("/proc/sys/net/ipv4/" + name) // of IPv6, too
	if sizes := strings.Fields(string(text)); len(sizes) == 3 {
		n, _ := strconv.Atoi(sizes[2])
		return n
	}
	return 0
}

// rateOf is how fast the interface with an address is, in bytes a second; 0 if it does not say so.
func rateOf(ip net.IP) float64 {
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				text, _ := os.ReadFile(fmt.Sprintf("/sys/class/net/%s/speed", i.Name))
				megabits, _ := strconv.Atoi(strings.TrimSpace(string(text)))
				return max(float64(megabits), 0) * 1e6 / 8
			}
		}
	}
	return 0
}
