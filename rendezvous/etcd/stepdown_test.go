package etcd

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A gag keeps etcd from being told some things, when it is on.
type gag struct {
	pb.KVClient
	on      atomic.Bool
	refuses func(*pb.TxnRequest) bool
}

func (g *gag) Txn(ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	if g.on.Load() && g.refuses(in) {
		return nil, status.Error(codes.DeadlineExceeded, "it is too large to get there")
	}
	return g.KVClient.Txn(ctx, in, opts...)
}

// decides reports whether a transaction writes to job/current.
func decides(in *pb.TxnRequest) bool {
	for _, op := range in.Success {
		if put := op.GetRequestPut(); put != nil && strings.HasSuffix(string(put.Key), "/job/current") {
			return true
		}
	}
	return false
}

// writes reports whether a transaction would change anything.
func writes(in *pb.TxnRequest) bool {
	for _, op := range in.Success {
		if op.GetRequestRange() == nil {
			return true
		}
	}
	return false
}

// TestLeaderThatCannotWrite is no longer the leader although it reads, and renews its lease. If it cannot even resign, its lease runs out.
func TestLeaderThatCannotWrite(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	for what, c := range map[string]struct {
		refuses func(*pb.TxnRequest) bool
		size    int // of the next round
	}{"what it decides": {decides, 3}, "anything": {writes, 2}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server.client(), 2, 3)
			gags := make(map[*agent]*gag)
			var agents []*agent
			for _, id := range []string{"n0", "n1", "n2"} {
				client := server.client()
				g := &gag{KVClient: clientv3.RetryKVClient(client), refuses: c.refuses}
				client.KV = clientv3.NewKVFromKVClient(g, client)
				a := j.agent(id, func(c *Config) { c.Client = client })
				agents, gags[a] = append(agents, a), g
			}
			rounds := together(t, agents)
			leader, rest, left := j.split(t, agents, rounds)
			gags[leader].on.Store(true)
			rest[0].report(left[0], failure(rest[0], left[0].Self, 3))
			wantNewRound(t, left)
			again := rest
			if c.size == 3 {
				wantNewRound(t, rounds)
				again = agents
			}
			if r := together(t, again)[0]; r.ID != 2 || r.Size != c.size {
				t.Errorf("the second round is %s", show(r))
			}
			gags[leader].on.Store(false)
		})
	}
}
