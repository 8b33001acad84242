package etcdstore

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/connectivity"
)

// A stuckWatcher cannot be closed, as one of etcd's may be to which a watch has just been refused.
type stuckWatcher struct {
	clientv3.Watcher
	closed chan struct{}
}

func (w stuckWatcher) Close() error {
	<-w.closed
	return w.Watcher.Close()
}

func TestAClientThatCannotBeClosed(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	w := stuckWatcher{client.Watcher, make(chan struct{})}
	defer close(w.closed)
	client.Watcher = w
	returned := make(chan error, 1)
	go func() { returned <- closeClient(client) }()
	select {
	case err := <-returned:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * closeTimeout):
		t.Fatal("it is still being closed")
	}
	if s := client.ActiveConnection().GetState(); s != connectivity.Shutdown {
		t.Errorf("its connection is %v", s)
	}
}
