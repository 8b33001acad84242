package tcp

import "golang.org/x/sys/unix"

// fewRetransmits is the least number of retransmissions in a row after which diagnosis suspects a cause.
const fewRetransmits = 3

// Diagnose implements transport.Diagnoser.
func (s *stream) Diagnose() string {
	info, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return ""
	}
	return blackHole(info)
}

// Diagnose implements transport.Diagnoser.
func (s *bundleStream) Diagnose() string {
	for _, c := range s.conns {
		if d := c.Diagnose(); d != "" {
			return d
		}
	}
	return ""
}

// blackHole suspects that a router drops packets above some size without an ICMP message (a black hole of path MTU
// discovery): what this side sends is lost again and again, while the short packets of the other side still arrive. The
// time between two retransmissions doubles, so the last one took about as long as all before it.
func blackHole(i *unix.TCPInfo) string {
	const microseconds = 1000
	if i.Retransmits < fewRetransmits || i.Last_data_recv >= i.Rto/microseconds {
		return ""
	}
	return "small packets come from it, and large ones to it are lost: the MTU on the way may be smaller than that of the interface"
}
