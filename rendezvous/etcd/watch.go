package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// watch calls changed whenever a key from first up to end may have changed, until ctx ends. What has changed is not
// told, so that nothing depends on no event being lost: changed is called once more each time that the watch begins,
// which it does anew after whatever ended it (a compaction, a member of etcd without a leader).
func watch(ctx context.Context, client *clientv3.Client, first, end string, changed func()) {
	for ctx.Err() == nil {
		attempt, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		events := client.Watch(attempt, first, clientv3.WithRange(end), clientv3.WithCreatedNotify())
		for range events {
			changed()
		}
		cancel()
		pause(ctx, retryPause)
	}
}
