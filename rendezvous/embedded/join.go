package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
)

const (
	joinTime     = 2 * time.Second  // for the first try to have another member change the cluster
	promoteTime  = 20 * time.Second // for the leader to give this member its vote
	replacedTime = 20 * time.Second // for the others to say whether they have replaced this member: one that they have replaced stops by itself
)

// join adds this server to the cluster of the others, as a learner, which has no vote before it has all data. The member
// that it was before is removed first: it is dead, and so the quorum of the others stays what it is. If they have none,
// nothing changes, for they refuse. It returns where the members are, of which this server is one; nil if the cluster
// still awaits it as one of its first members. It asks the members one after the other, each for at most limit, until one of
// them adds it.
func (s *Server) join(ctx context.Context, own *membership.Member, members []rendezvous.Endpoint, limit time.Duration) ([]rendezvous.Endpoint, error) {
	if err := s.unoccupied(ctx); err != nil {
		return nil, err
	}
	var failure error
	for _, e := range members { // a client of several would ask one that is silent as well
		var joined []rendezvous.Endpoint
		if joined, failure = s.joinBy(ctx, e, own, limit); failure == nil {
			return joined, nil
		}
	}
	return nil, failure
}

// joinBy asks one of the other members, for at most limit.
func (s *Server) joinBy(ctx context.Context, e rendezvous.Endpoint, own *membership.Member, limit time.Duration) ([]rendezvous.Endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{e.String()}, TLS: s.clientTLS, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(network.DialTCP)},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // it has done what it was for, or failed
	answer, err := client.MemberList(ctx)
	if err != nil {
		return nil, s.explainJoin(err)
	}
	list := answer.Members
	self := s.config.peerURL(s.config.Self)
	i := slices.IndexFunc(list, func(m *etcdserverpb.Member) bool { return slices.Contains(m.PeerURLs, self) })
	switch {
	case i < 0:
	case s.learner != 0 && list[i].ID == s.learner:
		return s.endpoints(list)
	case list[i].ID == uint64(own.ID) && len(list[i].ClientURLs) == 0:
		return nil, nil
	default:
		if _, err := client.MemberRemove(ctx, list[i].ID); err != nil {
			return nil, s.explainJoin(err)
		}
	}
	added, err := client.MemberAddAsLearner(ctx, []string{self})
	if err != nil {
		return nil, s.explainJoin(err)
	}
	s.learner = added.Member.ID
	return s.endpoints(added.Members)
}

func (s *Server) explainJoin(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrTooManyLearners):
		return errors.New("another member is becoming one again")
	case errors.Is(err, rpctypes.ErrUnhealthy), errors.Is(err, rpctypes.ErrMemberNotEnoughStarted):
		return errors.New("the other members have not been together for long enough")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, rpctypes.ErrNoLeader), errors.Is(err, rpctypes.ErrTimeout):
		return fmt.Errorf("the others are too few to decide (two of %d must have their data): start gorun on their nodes, or end the job on all of them and start it again", len(s.config.Members))
	}
	return err
}

// unoccupied fails if somebody else is reached at this server's address.
func (s *Server) unoccupied(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	var is founding
	if err := s.get(ctx, s.config.Self, foundingPath, &is); err == nil && is.Server != s.name {
		return errOccupied
	}
	return nil // a server need not reach itself by the address that others have for it
}

// endpoints are where members are.
func (s *Server) endpoints(members []*etcdserverpb.Member) (list []rendezvous.Endpoint, err error) {
	for _, m := range members {
		i := slices.IndexFunc(s.config.Members, func(e rendezvous.Endpoint) bool { return slices.Contains(m.PeerURLs, s.config.peerURL(e)) })
		if i < 0 {
			return nil, fmt.Errorf("the cluster has a member at %v, which is none of the endpoints: give every node the same endpoints", m.PeerURLs)
		}
		list = append(list, s.config.Members[i])
	}
	return list, nil
}

// isReplaced reports whether another server knows a cluster without this member.
func (s *Server) isReplaced(ctx context.Context) bool {
	return slices.ContainsFunc(s.survey(ctx, replacedTime), func(r report) bool {
		return r.members != nil && !slices.ContainsFunc(r.members, func(m *membership.Member) bool { return m.ID == s.member.Server.MemberID() })
	})
}

// promote gives this member a vote, if it is a learner.
func (s *Server) promote(ctx context.Context) error {
	server := s.member.Server
	for server.IsLearner() {
		tryCtx, cancel := context.WithTimeout(ctx, promoteTime)
		_, err := server.PromoteMember(tryCtx, uint64(server.MemberID()))
		cancel()
		if err != nil && !errors.Is(err, membership.ErrMemberNotLearner) {
			s.config.Waiting(fmt.Sprintf("the rendezvous at %s catches up with the other members: %v", s.config.Self, err))
		}
		select {
		case <-time.After(promotePause):
		case <-s.running.Done():
			return context.Cause(s.running)
		case <-server.StopNotify():
			return errStopped
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

const promotePause = 50 * time.Millisecond
