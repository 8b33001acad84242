package hosttest

import "fmt"

// Split moves host number first and those after it to a switch of their own. One link of a rate joins the two switches, in the form of tc, such as
// 1gbit, in each direction: the core of the network, which is oversubscribed if the hosts of a switch can together send more. burst is how many
// bytes pass at once. Call Split last, and once: Delay gives a host a link to the first switch.
func (w *Network) Split(first int, rate string, burst int) {
	w.t.Helper()
	w.bridge.run(w.t, "ip link add bridge2 type bridge && ip link set bridge2 up && ip link add core1 type veth peer name core2")
	for end, bridge := range map[string]string{"core1": "bridge", "core2": "bridge2"} {
		w.bridge.run(w.t, fmt.Sprintf("ip link set %s master %s up", end, bridge))
		w.bridge.run(w.t, shape(end, rate, burst))
	}
	for i := first; i < len(w.hosts); i++ {
		w.bridge.run(w.t, fmt.Sprintf("ip link set %s master bridge2", link(i)))
	}
}

// shape is a command that limits what is sent on a device.
func shape(device, rate string, burst int) string {
	return fmt.Sprintf("tc qdisc replace dev %s root tbf rate %s burst %d limit %d", device, rate, burst, max(4*burst, 1<<20))
}
