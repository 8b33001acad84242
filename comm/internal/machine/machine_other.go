//go:build !linux

package machine

import (
	"os"
	"time"
)

// Here returns where this process runs. No containers share a network on this system, so the name of the machine is
// enough.
func Here() (Place, error) {
	host, err := os.Hostname()
	return Place{Kernel: host, Network: host, Processes: host}, err
}

// ProcessState returns nothing on this system.
func ProcessState(int) string { return "" }

// AwaitExit returns that it is not known on this system.
func AwaitExit(int, time.Duration) (ended, known bool) { return false, false }
