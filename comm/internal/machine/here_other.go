//go:build !linux

package machine

import "os"

// Here is where this process runs. The system has no containers that share its network, so the name of the machine is all there
// is to tell.
func Here() (Place, error) {
	host, err := os.Hostname()
	return Place{Kernel: host, Network: host, Processes: host}, err
}
