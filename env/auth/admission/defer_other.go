//go:build !linux

package admission

import "net"

// deferAccept does nothing on this system.
func deferAccept(net.Listener) {}
