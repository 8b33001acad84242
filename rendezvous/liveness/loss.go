package liveness

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/keepalive"
)

// LossTime is how long the machine at the other end of a connection may give no sign before the connection breaks.
const LossTime = keepalive.Limit

// lastSign is when the machine at the other end of a connection, which has just broken with err, was there at the latest.
func lastSign(err error) time.Time {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) {
		return time.Now().Add(-LossTime)
	}
	return time.Now()
}
