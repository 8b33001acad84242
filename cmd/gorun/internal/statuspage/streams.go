package statuspage

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/control"
)

const (
	heartbeat  = 15 * time.Second
	linesPause = 250 * time.Millisecond // between two lists of lines
	maxLines   = 500                    // of a list; older ones are left out
)

// A stream sends server-sent events to one client.
type stream struct {
	w  http.ResponseWriter
	to *http.ResponseController
}

// stream begins to send events, if not too many clients have a stream. end ends it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) (st *stream, end func()) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return nil, nil
	}
	select {
	case s.streams <- struct{}{}:
	default:
		http.Error(w, "too many people look at this page", http.StatusServiceUnavailable)
		return nil, nil
	}
	w.Header().Set("Content-Type", "text/event-stream")
	st = &stream{w, http.NewResponseController(w)}
	return st, func() { <-s.streams }
}

// send sends one event; without data, a comment, which shows that the connection lives.
func (st *stream) send(data []byte) error {
	_ = st.to.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only if the client is gone
	text := []byte(": here\n\n")
	if data != nil {
		text = append(append([]byte("data: "), data...), "\n\n"...) // JSON has no line ends
	}
	if _, err := st.w.Write(text); err != nil {
		return err
	}
	return st.to.Flush()
}

func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	st, end := s.stream(w, r)
	if st == nil {
		return
	}
	defer end()
	documents, leave := s.job.view()
	defer leave()
	for {
		var text []byte
		select {
		case text = <-documents:
		case <-time.After(heartbeat):
		case <-r.Context().Done():
			return
		}
		if st.send(text) != nil {
			return
		}
	}
}

func (s *Server) serveLogs(w http.ResponseWriter, r *http.Request) {
	rank, err := strconv.Atoi(r.URL.Query().Get("rank"))
	if err != nil || rank < 0 {
		http.Error(w, "want rank=R, from 0", http.StatusBadRequest)
		return
	}
	agent := s.job.agentOf(r.Context(), rank)
	if agent == nil {
		http.Error(w, "no node that answers has this rank", http.StatusNotFound)
		return
	}
	st, end := s.stream(w, r)
	if st == nil {
		return
	}
	defer end()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var lines lineList
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = agent.Logs(ctx, rank, true, lines.add) // the client connects again
	}()
	defer func() { cancel(); <-ended }()
	last := time.Now()
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		case <-time.After(linesPause):
		case <-ctx.Done():
			return
		}
		text := lines.take()
		if text == nil && time.Since(last) < heartbeat {
			continue
		}
		last = time.Now()
		if st.send(text) != nil {
			return
		}
	}
}

// A lineList has the lines that have come and are not sent yet.
type lineList struct {
	mu    sync.Mutex
	lines []control.Line
}

func (l *lineList) add(line control.Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.lines); n > 0 && l.lines[n-1].Unfinished && l.lines[n-1].Stream == line.Stream {
		line.Missed = line.Missed || l.lines[n-1].Missed
		l.lines[n-1] = line
		return
	}
	if len(l.lines) == maxLines {
		l.lines = append(l.lines[:0], l.lines[1:]...)
		l.lines[0].Missed = true
	}
	l.lines = append(l.lines, line)
}

// take returns the lines as JSON; nil: there are none.
func (l *lineList) take() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 0 {
		return nil
	}
	text, _ := json.Marshal(l.lines) // of texts and numbers: cannot fail
	l.lines = nil
	return text
}
