package etcd

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A leaseState is what there is to know of the node's lease.
type leaseState struct {
	id  clientv3.LeaseID // 0: none
	err error            // why it could not be granted or kept; nil: all is well
}

// keepLease has one lease after the other until ctx ends, and tells of each change. A lease is given up when etcd says
// that it is gone, and not for silence: after an outage leases have their full time again.
//
// Before each request it waits for its turn, which the node's loop gives it: the lease says that the node does its work, and so
// it must not outlast a loop that is stuck, or a leader that cannot write.
//
// It does not use the client's KeepAlive, which gives up after one time to live without an answer.
func keepLease(ctx context.Context, client *clientv3.Client, ttl time.Duration, turn func() (renew, on bool), tell func(leaseState)) {
	var last leaseState
	for ctx.Err() == nil {
		renew, on := turn()
		if !on {
			return
		}
		if !renew {
			pause(ctx, ttl/6)
			continue
		}
		next := leaseState{id: last.id}
		wait := retryPause
		call, cancel := context.WithTimeout(ctx, min(callTimeout, max(ttl*3/4, time.Second)))
		if last.id == 0 {
			answer, err := client.Grant(call, int64(ttl.Seconds()+0.5))
			if next.err = err; err == nil {
				next.id = answer.ID
				ttl = time.Duration(answer.TTL) * time.Second
				wait = ttl / 6
			}
		} else {
			_, err := client.KeepAliveOnce(call, last.id)
			switch {
			case err == nil:
				wait = ttl / 6
			case errors.Is(err, rpctypes.ErrLeaseNotFound):
				next, wait = leaseState{}, 0
			default:
				next.err = err
			}
		}
		cancel()
		if next.id != last.id || next.err != nil || last.err != nil {
			tell(next)
		}
		last = next
		pause(ctx, wait)
	}
}
