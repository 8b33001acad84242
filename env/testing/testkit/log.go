package testkit

import (
	"bytes"
	"log/slog"
	"sync"
)

// A Log keeps what is written to it, and is read meanwhile. Goroutines may share it; the zero value is empty.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Logger writes to the log.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
