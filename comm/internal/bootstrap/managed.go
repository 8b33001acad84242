package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/gorun/gorun/comm/internal/token"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/munge"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/env/network"
)

// managed returns the place that a resource manager gives this process: srun, mpirun, mpiexec or flux has started it
// without gorun. It returns false if there is no manager.
func managed(lookup func(string) (string, bool)) (p place, ok bool, err error) {
	t, err := manager.Find(lookup)
	if t == nil || t.Size == 0 || err != nil {
		return place{}, false, err
	}
	p = place{rank: t.Rank, size: t.Size, here: t.LocalSize, local: t.LocalRank, task: t}
	host, hostSet := lookup("MASTER_ADDR")
	port, portSet := lookup("MASTER_PORT")
	switch {
	case hostSet != portSet:
		return p, true, errors.New("set both MASTER_ADDR and MASTER_PORT, or neither")
	case hostSet:
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || host == "" {
			return p, true, fmt.Errorf("MASTER_ADDR=%.64q, MASTER_PORT=%.64q: want a host, and a port from 1 to 65535", host, port)
		}
		p.master = net.JoinHostPort(host, port)
	case t.Size == 1:
		p.master = ownMaster(t)
	case t.LocalSize == t.Size && !t.Unnamed:
		p.master = ownMaster(t)
	case len(t.Hosts) == 0:
		write := "set MASTER_ADDR=HOST, MASTER_PORT=PORT and GORUN_TOKEN for all ranks"
		if t.PassOn != "" {
			write += " (" + t.PassOn + ")"
		}
		return p, true, fmt.Errorf("%s does not say where rank 0 runs: %s, where HOST is the host of rank 0", t.Name, write)
	case t.Rank == 0 && t.Node != 0:
		return p, true, fmt.Errorf("%s runs rank 0 on %s, and other ranks look for it on the first node, %s: set MASTER_ADDR and MASTER_PORT", t.Name, t.Hosts[t.Node], t.Hosts[0])
	default:
		p.master = net.JoinHostPort(t.Hosts[0], strconv.Itoa(manager.Port(t.ID)+manager.MasterPort))
	}
	p.meet = "the store at " + p.master
	return p, true, nil
}

// ownMaster is for ranks that are all on one machine.
func ownMaster(t *manager.Task) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(manager.Port(t.ID)+manager.MasterPort))
}

// A negotiation is what the ranks of a manager's job have agreed on in their first Init. It holds for all worlds of
// this process.
type negotiation struct {
	mu    sync.Mutex
	token string // by MUNGE; empty: not yet, or not needed
}

var negotiated negotiation

// negotiate finds out the token, by MUNGE if the user has set none. When all ranks have met, call end.
func (c *Config) negotiate(ctx context.Context, p *place, waits *waiting) (end func(), err error) {
	end = func() {}
	if p.task == nil || p.size == 1 {
		return end, nil
	}
	negotiated.mu.Lock()
	defer negotiated.mu.Unlock()
	host, _, _ := net.SplitHostPort(p.master) // made by JoinHostPort
	switch {
	case c.Token != "":
	case network.IsLoopback(host):
		own, err := token.Or(nil)
		if err != nil {
			return end, err
		}
		c.Token = string(own.Bytes())
	case p.task.Munge && len(p.task.Hosts) > 0 && munge.Available():
		if end, err = c.askMunge(ctx, p, waits); err != nil {
			return end, err
		}
	default:
		return end, refusef("%s can be reached from the network and there is no token: %s",
			p.master, p.task.ShareToken())
	}
	if err := auth.CheckSecret([]byte(c.Token)); err != nil {
		return end, refusef("%w (GORUN_TOKEN)", err)
	}
	// Another job of this user that has the same port is another job.
	c.Token = auth.Derive([]byte(c.Token), "ranks of "+p.task.String())
	return end, nil
}

// askMunge sets the token: rank 0 makes one, and gives it to the others until all have met.
func (c *Config) askMunge(ctx context.Context, p *place, waits *waiting) (end func(), err error) {
	t, end := p.task, func() {}
	port := manager.Port(t.ID) + manager.TokenPort
	if t.Rank == 0 || negotiated.token == "" {
		if err := munge.Check(ctx); err != nil { // on each node, so that no rank waits for rank 0 if there is no MUNGE here
			return end, fmt.Errorf("cannot get a token by MUNGE, which does not work on %s: %w; %s", t.Hosts[t.Node], err, t.ShareToken())
		}
	}
	switch {
	case t.Rank > 0 && negotiated.token != "":
	case t.Rank > 0:
		at := net.JoinHostPort(t.Hosts[0], strconv.Itoa(port))
		negotiated.token, err = munge.Ask(ctx, at, t.ID, strconv.Itoa(t.Rank), func(reason string) { waits.on(func(context.Context) string { return reason }) })
		if errors.Is(err, context.DeadlineExceeded) {
			err = p.withoutStore(err) // rank 0, which serves the store, also gives the token
		}
		if err != nil {
			return end, err
		}
	default:
		l, err := munge.Listen(ctx, t.Hosts[0], port)
		if err != nil {
			return end, err
		}
		if negotiated.token == "" {
			negotiated.token = auth.NewSecret()
		}
		server := munge.Serve(l, t.ID, negotiated.token, c.Log.Info)
		end = func() { _ = server.Close() } // nobody else asks
	}
	c.Token = negotiated.token
	return end, nil
}
