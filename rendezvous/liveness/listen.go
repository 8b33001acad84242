package liveness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/keepalive"
)

func (d *Detector) answer(conn *admission.Conn) {
	caller, err := d.welcome(conn)
	if err != nil || !caller.Stay {
		if err != nil {
			conn.TurnedAway(err)
		}
		_ = conn.Close() // the caller knows why
		return
	}
	keepalive.Set(conn.NetConn(), true)
	d.count(caller.From, 1)
	_ = await(d.ctx, conn) // however it has ended
	d.count(caller.From, -1)
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String()) // what it calls itself may mean something else here
	if err != nil {
		return
	}
	if addr := net.JoinHostPort(host, strconv.Itoa(caller.Port)); d.ended(d.ctx, caller.From, addr) {
		d.config.Ended(caller.From, addr)
	}
}

func (d *Detector) welcome(conn *admission.Conn) (caller hello, err error) {
	defer context.AfterFunc(d.ctx, func() { _ = conn.Close() })()
	_, err = auth.Accept(conn, *d.secret.Load(), func(text []byte) ([]byte, error) {
		if !conn.Admit() {
			return nil, net.ErrClosed
		}
		_ = conn.SetDeadline(time.Now().Add(callLimit)) // for what is left to say
		caller, err = parseHello(text)
		if err == nil && caller.To != d.config.Key {
			err = errors.New("another process answers here")
		}
		return nil, err
	})
	return caller, errors.Join(err, conn.SetDeadline(time.Time{}))
}

func parseHello(text []byte) (h hello, err error) {
	if err := json.Unmarshal(text, &h); err != nil {
		return hello{}, fmt.Errorf("not a hello: %w", err)
	}
	if len(h.From) > maxKey || h.Port < 0 || h.Port > 65535 || h.Stay && h.Port == 0 {
		return hello{}, fmt.Errorf("not a hello: it is from %.80q at port %d", h.From, h.Port)
	}
	return h, nil
}
