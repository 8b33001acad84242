package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// watch calls changed with the events of the keys from first up to end, until ctx ends. Whatever ends the watch (a refusal, a compaction,
// a member of etcd without a leader), it begins again. Each time it begins, it calls changed without events, because some may have been
// lost: the callee then reads everything.
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
