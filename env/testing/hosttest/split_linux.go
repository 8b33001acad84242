package hosttest

import "fmt"

// Split moves some hosts to a second switch: the one with the number first, and those after it. The switches are joined by one link, the core of the
// network. rate is its rate in each direction, in the form of tc, such as 1gbit; burst is how many bytes pass at once. Call Split once, and after
// Delay, which attaches a host to the first switch.
func (w *Network) Split(first int, rate string, burst int) {
	w.t.Helper()
	Need(w.t, "tc", "iproute2")
	w.bridge.run(w.t, "ip link add bridge2 type bridge && ip link set bridge2 up && ip link add core1 type veth peer name core2")
	for end, bridge := range map[string]string{"core1": "bridge", "core2": "bridge2"} {
		w.bridge.run(w.t, fmt.Sprintf("ip link set %s master %s up", end, bridge))
		w.bridge.run(w.t, shape(end, rate, burst))
	}
	for i := first; i < len(w.hosts); i++ {
		w.bridge.run(w.t, fmt.Sprintf("ip link set %s master bridge2", link(i)))
	}
}
