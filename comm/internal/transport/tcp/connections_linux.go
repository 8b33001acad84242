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

// measure returns what the kernel knows of the network under c, which has just been connected.
func measure(c *net.TCPConn) link {
	l := link{window: min(largest("tcp_rmem"), largest("tcp_wmem"))}
	if local, ok := c.LocalAddr().(*net.TCPAddr); ok {
		l.rate = rateOf(local.IP)
	}
	control(c, func(fd int) {
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			l.rtt = time.Duration(info.Rtt) * time.Microsecond
		}
	})
	return l
}

// largest returns the most bytes to which the kernel lets a buffer of a connection grow.
func largest(name string) int {
	text, _ := os.ReadFile("/proc/sys/net/ipv4/" + name) // holds for IPv6 as well
	if sizes := strings.Fields(string(text)); len(sizes) == 3 {
		n, _ := strconv.Atoi(sizes[2])
		return n
	}
	return 0
}

// rateOf returns the speed of the interface with an address, in bytes a second. It is 0 if the interface does not say
// it.
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
