package control

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/progress"
	"github.com/gorun/gorun/launcher"
)

// overPipes returns a client whose connections the server gets as those that others have accepted.
func overPipes(s *Server) *Client {
	return NewClient(func(context.Context) (net.Conn, error) {
		here, there := net.Pipe()
		go s.ServeConn(there)
		return here, nil
	})
}

// TestManyFollow: clients that follow the output do not keep out those who ask for something else.
func TestManyFollow(t *testing.T) {
	lines := launcher.NewRecent(1)
	lines.Add(0, launcher.Stdout, []byte("line\n"))
	s := New(Config{Recent: lines})
	s.Publish(node())
	c := overPipes(s)
	seen, ended := make(chan Line, maxFollowers), make(chan error, maxFollowers)
	for range maxFollowers {
		go func() { ended <- c.Logs(t.Context(), -1, true, func(l Line) { seen <- l }) }()
	}
	for range maxFollowers {
		<-seen
	}
	if err := c.Logs(t.Context(), -1, true, func(Line) {}); err == nil || !strings.Contains(err.Error(), "32 others follow its output already") {
		t.Errorf("one more: %v", err)
	}
	for range 2 * maxConns { // that are turned away, and stay connected
		here, there := net.Pipe()
		t.Cleanup(func() { _ = here.Close() })
		go s.ServeConn(there)
		_, _ = here.Write([]byte("GET /logs?follow HTTP/1.1\r\nHost: gorun\r\n\r\n"))
		if answer, err := http.ReadResponse(bufio.NewReader(here), nil); err != nil || answer.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("one that only reads its answer: %v, %v", answer, err)
		}
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Logs(t.Context(), -1, false, func(Line) {}); err != nil {
		t.Error(err)
	}
	s.Close()
	for range maxFollowers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestManyAsk: of many clients who ask at the same time, none is turned away.
func TestManyAsk(t *testing.T) {
	s := New(Config{Recent: launcher.NewRecent(1), Ask: func(context.Context, string) *progress.Status { time.Sleep(10 * time.Millisecond); return nil }})
	defer s.Close()
	s.Publish(node())
	errs := make(chan error)
	for range 2 * maxConns {
		go func() { _, err := overPipes(s).Status(t.Context()); errs <- err }()
	}
	for range 2 * maxConns {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestSuspendedFollower: a client that follows the output may be suspended for as long as its user likes.
func TestSuspendedFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := launcher.NewRecent(1)
		for range 1000 {
			lines.Add(0, launcher.Stdout, []byte(strings.Repeat("x", 99)+"\n"))
		}
		s := New(Config{Recent: lines})
		s.Publish(node())
		body, err := overPipes(s).ask(t.Context(), http.MethodGet, "/logs?follow")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * writeTimeout)
		count, ended := 0, make(chan error)
		go func() { ended <- readLines(body, func(Line) { count++ }) }()
		time.Sleep(writeTimeout)
		s.Close()
		if err := <-ended; err != nil || count != 1000 {
			t.Errorf("%d lines, %v", count, err)
		}
		_ = body.Close()
	})
}

// TestBrokenLines: what came of a line when the connection broke is no line, and that it broke is an error.
func TestBrokenLines(t *testing.T) {
	here, there := net.Pipe()
	go func() {
		_, _ = there.Read(make([]byte, 1000))
		_, _ = there.Write([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n" + `{"rank":1,"stream":"stdout","text":"whole"}` + "\n" + `{"rank":1,"st`))
		_ = there.Close()
	}()
	c := NewClient(func(context.Context) (net.Conn, error) { return here, nil })
	var got []string
	err := c.Logs(t.Context(), -1, true, func(l Line) { got = append(got, l.Text) })
	if strings.Join(got, "|") != "whole" || err == nil || !strings.Contains(err.Error(), "the connection broke") {
		t.Errorf("lines %q, %v", got, err)
	}
	_ = here.Close()
	if _, err := c.Status(t.Context()); err == nil {
		t.Error("a status of nobody")
	}
}
