package drill

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// listen receives the workers' reports and posts them as news, as long as the testbed lives.
func (s *testbed) listen() error {
	l, err := net.Listen("unix", s.socket())
	if err != nil {
		return fmt.Errorf("%w (a shorter $TMPDIR may help)", err)
	}
	context.AfterFunc(s.life, func() { _ = l.Close() })
	s.others.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.others.Go(func() { s.receive(conn) })
		}
	})
	return nil
}

// receive receives the reports of one worker until it ends.
func (s *testbed) receive(conn net.Conn) {
	defer context.AfterFunc(s.life, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	var k *worker
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var m message
		err := json.Unmarshal(lines.Bytes(), &m)
		if err == nil && k == nil {
			k, err = newWorker(m, conn)
		}
		if err != nil {
			err = fmt.Errorf("bad message %.100q from a worker: %w", lines.Text(), err)
			s.post(func(time.Time) { s.seen.fail(err) })
			return
		}
		if m.Kind == rejoined && m.Place != nil {
			k = k.inRound(*m.Place)
		}
		now := k
		s.post(func(at time.Time) { s.seen.receive(at, now, m) })
	}
	if k != nil {
		s.post(func(at time.Time) { s.seen.lose(at, k) })
	}
}

// newWorker returns the worker that sent m as its first message. It opens the process while the connection shows that it is alive.
func newWorker(m message, conn net.Conn) (*worker, error) {
	if m.Place == nil {
		return nil, errors.New("the first message does not say which worker sent it")
	}
	process, err := os.FindProcess(m.Place.Pid)
	if err != nil {
		return nil, err
	}
	return &worker{place: *m.Place, process: process, conn: conn}, nil
}
