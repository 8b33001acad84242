package reach

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gorun/gorun/rendezvous"
)

// ask talks to one that speaks HTTP/2: whether it is an etcd, has a leader, and lets this user in.
func (t Target) ask(ctx context.Context, e rendezvous.Endpoint) *Problem {
	config := clientv3.Config{Endpoints: []string{e.String()}, TLS: t.TLS, Context: ctx, DialTimeout: diagnosis, Logger: zap.NewNop()}
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
		return t.askProblem(rpctypes.ErrNoLeader)
	}
	config.Username, config.Password = t.Username, t.Password
	user, err := clientv3.New(config)
	if err != nil {
		return t.askProblem(err)
	}
	defer func() { _ = user.Close() }() // nothing was written
	if _, err = user.Get(ctx, "gorun", clientv3.WithCountOnly()); err != nil {
		return t.askProblem(err)
	}
	return nil
}

// askProblem is nil for an error that only somebody who has been let in gets.
func (t Target) askProblem(err error) *Problem {
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return nil
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return &Problem{Kind: Login, Err: errors.New("its etcd wants a user name: give username= and password_file= in --rdzv-conf")}
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return &Problem{Kind: Login, Err: errors.New("its etcd knows no such user with this password: correct username= and password_file= in --rdzv-conf")}
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded, isLeaderless(err):
		return &Problem{Kind: NoLeader, Err: errors.New("its etcd has no leader: start its other members, or see to it that they reach each other")}
	}
	return &Problem{Kind: Stranger, Err: fmt.Errorf("it does not answer as an etcd does (%.200q): %s", status.Convert(err).Message(), t.elsewhere())}
}

// isLeaderless reports an error of an etcd that is too few.
func isLeaderless(err error) bool {
	for _, e := range []error{
		rpctypes.ErrNoLeader, rpctypes.ErrTimeout, rpctypes.ErrLeaderChanged, rpctypes.ErrStopped,
		rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrUnhealthy,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
