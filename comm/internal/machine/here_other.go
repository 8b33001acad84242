//go:build !linux

package machine

import "os"

// Here returns where this process runs. No containers share a network on this system, so the name of the machine is enough.
func Here() (Place, error) {
	host, err := os.Hostname()
	return Place{Kernel: host, Network: host, Processes: host}, err
}
