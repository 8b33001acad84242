package launch

import (
	"context"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// A session is all that happens with one host, in its own goroutine: a connection, and, if gorun has to be copied there, others before
// it.
type session struct {
	config  *Config
	host    int
	starter starter
	events  chan<- any
}

// run ends with the event closed.
func (s *session) run(ctx context.Context) {
	c, h := s.config, s.config.Hosts[s.host]
	e, err := s.serve(ctx, c.Path)
	if err == nil && c.Copy != nil && !c.IsSelf[s.host] && e.needsCopy() && ctx.Err() == nil {
		if why := s.copy(ctx); why != nil {
			s.events <- closed{s.host, why}
			return
		}
		e, err = s.serve(ctx, c.Path)
	}
	if err != nil {
		s.events <- closed{s.host, &Failure{h.Name, "connecting", err.Error(), codeCorrect}}
		return
	}
	s.events <- closed{s.host, e.failure(h, c.Path)}
}

// serve runs a proxy there until it ends.
func (s *session) serve(ctx context.Context, path string) (ending, error) {
	c := s.config
	argv := c.Shell.Argv(c.Hosts[s.host], ProxyCommand(path))
	if c.IsSelf[s.host] {
		argv = []string{c.Self, "agent"}
	}
	conn, err := connect(ctx, s.starter, argv)
	if err != nil {
		return ending{}, err
	}
	defer context.AfterFunc(ctx, conn.kill)()
	s.events <- connected{s.host, conn}
	return conn.receive(func(hello frame.Hello) bool {
		s.events <- said{s.host, hello}
		return true
	}, func(kind frame.Kind, payload []byte) bool {
		s.events <- received{s.host, kind, payload}
		return kind != frame.Ended
	}), nil
}
