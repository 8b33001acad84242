package tcp

import "golang.org/x/sys/unix"

// fewRetransmits is after how many times in vain that something was sent it is taken for lost on purpose.
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

// blackHole suspects that a router on the way drops packets above some size and does not say so: what this side sends is lost
// again and again, while what the other side sends, which is short as it only asks, arrives all the time. The time between two
// attempts doubles, so it is about that since the first one.
func blackHole(i *unix.TCPInfo) string {
	const microseconds = 1000
	if i.Retransmits < fewRetransmits || i.Last_data_recv >= i.Rto/microseconds {
		return ""
	}
	return "small packets come from it, and large ones to it are lost: the MTU on the way may be smaller than that of the interface"
}
