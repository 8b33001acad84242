package main

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// Traffic is what nodes and etcd have said to each other.
type traffic struct {
	Requests, Answers int64 // events of watches are answers
	Sent, Got         int64 // bytes
}

// since is the mean of what has been said after before.
func (t traffic) since(before traffic, times int) traffic {
	n := int64(times)
	return traffic{
		Requests: (t.Requests - before.Requests) / n, Answers: (t.Answers - before.Answers) / n,
		Sent: (t.Sent - before.Sent) / n, Got: (t.Got - before.Got) / n,
	}
}

// A counter counts the traffic of the connections whose stats.Handler it is.
type counter struct{ requests, answers, sent, got atomic.Int64 }

func (c *counter) now() traffic {
	return traffic{Requests: c.requests.Load(), Answers: c.answers.Load(), Sent: c.sent.Load(), Got: c.got.Load()}
}

// HandleRPC counts messages, with the headers of the messages but not those of the calls.
func (c *counter) HandleRPC(_ context.Context, s stats.RPCStats) {
	switch s := s.(type) {
	case *stats.OutPayload:
		c.requests.Add(1)
		c.sent.Add(int64(s.WireLength))
	case *stats.InPayload:
		c.answers.Add(1)
		c.got.Add(int64(s.WireLength))
	}
}

// TagRPC has nothing to add.
func (c *counter) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn has nothing to add.
func (c *counter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn counts nothing.
func (c *counter) HandleConn(context.Context, stats.ConnStats) {}
