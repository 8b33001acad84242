package reach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
)

// ask talks to one that speaks HTTP/2: whether it is an etcd, has a leader, and lets this user in. Who has once answered as an
// etcd does is one, whatever it answers next.
func (t Target) ask(ctx context.Context, e rendezvous.Endpoint) *Problem {
	config := clientv3.Config{
		Endpoints: []string{e.String()}, TLS: t.TLS, Context: ctx, DialTimeout: diagnosis, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(network.DialTCP)},
	}
	anybody, err := clientv3.New(config)
	if err != nil {
		return t.askProblem(err)
	}
	defer func() { _ = anybody.Close() }() // nothing was written
	member, err := anybody.Status(ctx, e.String())
	switch {
	case errors.Is(err, rpctypes.ErrUserEmpty) && t.Username != "":
	case err != nil:
		return t.askProblem(err)
	case member.Leader == 0:
		return leaderless(ctx, anybody)
	}
	user := anybody
	if t.Username != "" {
		config.Username, config.Password = t.Username, t.Password
		if user, err = clientv3.New(config); err == nil {
			defer func() { _ = user.Close() }() // nothing was written
		}
	}
	if err == nil {
		_, err = user.Get(ctx, "gorun", clientv3.WithCountOnly())
	}
	switch p := t.askProblem(err); {
	case err == nil, p == nil:
		return nil
	case p.Kind == NoLeader:
		return leaderless(ctx, anybody)
	case p.Kind == Stranger:
		return failing(err)
	default:
		return p
	}
}

var errNoLeader = errors.New("its etcd has no leader, or does not answer in time: start its other members, make sure that they reach each other, or look what keeps its machine busy")

// leaderless says what to do about an etcd without a leader, which depends on how many members it has.
func leaderless(ctx context.Context, c *clientv3.Client) *Problem {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), politely)
	defer cancel()
	if list, err := c.MemberList(ctx, clientv3.WithSerializable()); err == nil && len(list.Members) == 1 {
		return &Problem{Kind: NoLeader, Err: errors.New("its etcd, which has no other members, does not answer: check its log, and whether its disk is full or slow")}
	}
	return &Problem{Kind: NoLeader, Err: errNoLeader}
}

func failing(err error) *Problem {
	return &Problem{Kind: Failing, Err: fmt.Errorf("its etcd cannot answer now (%.200q): check its log", status.Convert(err).Message())}
}

// askProblem is nil for an error that only somebody who has been let in gets. Only an answer that says so is one of somebody
// who is no etcd: silence is none, nor is one that there is no time, or no room, for the question.
func (t Target) askProblem(err error) *Problem {
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return nil
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return &Problem{Kind: Login, Err: errors.New("its etcd requires a user name: give username= and password_file= in --rdzv-conf")}
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return &Problem{Kind: Login, Err: errors.New("its etcd knows no such user with this password: correct username= and password_file= in --rdzv-conf")}
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded, isLeaderless(err):
		return &Problem{Kind: NoLeader, Err: errNoLeader}
	}
	var known rpctypes.EtcdError
	isEtcd := errors.As(err, &known) && strings.HasPrefix(known.Error(), "etcdserver: ")
	passes := slices.Contains([]codes.Code{codes.Canceled, codes.Unavailable, codes.ResourceExhausted, codes.Aborted}, status.Code(err))
	if isEtcd || passes || errors.Is(err, context.Canceled) {
		return failing(err)
	}
	return &Problem{Kind: Stranger, Err: fmt.Errorf("it does not answer as an etcd does (%.200q): %s", status.Convert(err).Message(), t.elsewhere())}
}

// isLeaderless reports an error of an etcd that is too few.
func isLeaderless(err error) bool {
	return slices.ContainsFunc([]error{
		rpctypes.ErrNoLeader, rpctypes.ErrTimeout, rpctypes.ErrLeaderChanged, rpctypes.ErrStopped,
		rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrUnhealthy,
	}, func(e error) bool { return errors.Is(err, e) })
}
