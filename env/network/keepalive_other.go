//go:build !linux

package network

import (
	"net"
	"time"
)

// On other systems, only the probes count, while nothing is being sent.
func setUserTimeout(*net.TCPConn, time.Duration) {}
