package tie

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/gorun/gorun/env/auth"
)

// listen lets in as many strangers at a time as there may be; the others wait in the kernel's queue.
func (e *End) listen() {
	room := make(chan struct{}, strangers)
	for {
		room <- struct{}{}
		conn, err := e.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as no descriptor left
			<-room
			pause(e.ctx, minPause)
		default:
			e.all.Go(func() { e.answer(conn, func() { <-room }) })
		}
	}
}

// answer calls known when the caller is a stranger no more, or has been turned away.
func (e *End) answer(conn net.Conn, known func()) {
	caller, err := e.welcome(conn)
	known()
	if err != nil || !caller.Stay {
		_ = conn.Close() // the caller knows why
		return
	}
	noticeLoss(conn)
	e.count(caller.From, 1)
	await(e.ctx, conn)
	e.count(caller.From, -1)
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String()) // what it calls itself may mean something else here
	if err == nil && e.ended(e.ctx, caller.From, net.JoinHostPort(host, strconv.Itoa(caller.Port))) {
		e.config.Ended(caller.From)
	}
}

func (e *End) welcome(conn net.Conn) (caller hello, err error) {
	ctx, cancel := context.WithTimeout(e.ctx, strangerTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	_, err = auth.Accept(conn, e.token(), func(text []byte) ([]byte, error) {
		if err := json.Unmarshal(text, &caller); err != nil {
			return nil, fmt.Errorf("not a hello: %w", err)
		}
		if caller.To != e.config.Key {
			return nil, errors.New("another process answers here")
		}
		return nil, nil
	})
	if !stop() {
		err = ctx.Err()
	}
	return caller, err
}
