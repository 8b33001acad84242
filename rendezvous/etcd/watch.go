package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// watch calls changed with what happens to the keys from first up to end, until ctx ends. So that nothing depends on no
// event being lost, changed is called with none each time that the watch begins, which it does anew after whatever ended it
// (a compaction, a member of etcd without a leader), or is refused.
func watch(ctx context.Context, client *clientv3.Client, first, end string, changed func([]*clientv3.Event)) {
	for ctx.Err() == nil {
		attempt, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		for answer := range client.Watch(attempt, first, clientv3.WithRange(end), clientv3.WithCreatedNotify()) {
			changed(answer.Events)
		}
		cancel()
		pause(ctx, retryInterval)
	}
}
