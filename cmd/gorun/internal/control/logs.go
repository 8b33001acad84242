package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/launcher"
)

// A Line is a line that a worker has written.
type Line struct {
	Rank      int    `json:"rank"` // that it has now
	LocalRank int    `json:"local_rank"`
	Stream    string `json:"stream"`           // "stdout" or "stderr"
	Text      string `json:"text"`             // what a terminal shows of it, without its end
	Missed    bool   `json:"missed,omitempty"` // lines before it are not kept any more

	Unfinished bool `json:"unfinished,omitempty"` // the next Line of its worker and stream takes its place
}

const maxLine = 64 << 10 // bytes; a longer line is cut into several

// serveLogs writes the last lines of workers, and, if the client follows, those that come.
func (s *Server) serveLogs(w http.ResponseWriter, r *http.Request) {
	follow, err := parseSwitch(r, "follow")
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	unfinished, err := parseSwitch(r, "unfinished")
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	rank := -1
	if text := r.URL.Query().Get("rank"); text != "" {
		if rank, err = strconv.Atoi(text); err != nil || rank < 0 {
			refuse(w, http.StatusBadRequest, fmt.Errorf("rank=%.20q: want a rank, from 0", text))
			return
		}
	}
	if follow {
		select {
		case s.follow <- struct{}{}:
			defer func() { <-s.follow }()
			releaseSlot(r)
		default:
			refuse(w, http.StatusServiceUnavailable, fmt.Errorf("%d others follow its output already: end one of them, or ask without --follow", maxFollowers))
			return
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	readers := make([]lineReader, s.config.Recent.Len())
	for i := range readers {
		readers[i].unfinished = unfinished
	}
	to := http.NewResponseController(w)
	for {
		changed := s.config.Recent.Changed()
		follow = follow && s.ctx.Err() == nil
		var text []byte
		for local := range readers {
			if now := s.rankOf(local); rank < 0 || now == rank {
				text = readers[local].read(text, s.config.Recent, Line{Rank: now, LocalRank: local}, !follow)
			}
		}
		deadline := time.Now().Add(writeTimeout)
		if follow {
			deadline = time.Time{} // the client may be suspended, and misses lines then
		}
		_ = to.SetWriteDeadline(deadline) // fails only if the client is gone
		if _, err := w.Write(text); err != nil || to.Flush() != nil || !follow {
			return
		}
		select {
		case <-changed:
			network.Pause(r.Context(), followPause) // more may follow at once: it is sent together
		case <-r.Context().Done(): // the client is gone, or the server is closing
		}
		if r.Context().Err() != nil && s.ctx.Err() == nil {
			return
		}
	}
}

const followPause = 50 * time.Millisecond

// rankOf returns the rank of a local rank in the last round; before the first one, the local rank.
func (s *Server) rankOf(local int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node == nil || local >= len(s.node.Workers) {
		return local
	}
	return s.node.Workers[local].Rank
}

// A lineReader reads the lines of one worker.
type lineReader struct {
	unfinished bool // it also reads lines that have not ended
	next       uint64
	missed     bool
	streams    [2]partialLine // stdout, stderr
}

// A partialLine is the beginning of a line of a stream.
type partialLine struct {
	text  []byte
	skip  bool // until the line ends or begins again: its beginning is not kept any more
	fresh bool // text has not been read
}

// add adds what a line goes on with. A progress bar begins its line again and again, and only the last time counts.
func (p *partialLine) add(text []byte) {
	if again := launcher.Visible(text); p.skip && len(again) < len(bytes.TrimRight(text, "\r")) {
		p.skip = false
	}
	if p.skip || len(text) == 0 {
		return
	}
	p.text = append(p.text, text...)
	begin := len(bytes.TrimRight(p.text, "\r")) - len(launcher.Visible(p.text))
	p.text, p.fresh = p.text[begin:], true
}

// read appends the lines that have come since the last call, as JSON. With last, lines that have not ended count as lines.
func (l *lineReader) read(out []byte, from *launcher.Recent, like Line, last bool) []byte {
	pieces, next, missed := from.Since(like.LocalRank, l.next)
	l.next = next
	if missed {
		l.missed = true
		l.streams = [2]partialLine{{skip: true}, {skip: true}}
	}
	for _, p := range pieces {
		s := &l.streams[streamIndex(p.Stream)]
		like.Stream = streamNames[streamIndex(p.Stream)]
		for line := range bytes.Lines(p.Text) {
			line, ended := bytes.CutSuffix(line, []byte("\n"))
			s.add(line)
			for len(s.text) > maxLine {
				out = l.append(out, like, s.text[:maxLine])
				s.text = s.text[maxLine:]
			}
			if ended {
				if !s.skip {
					out = l.append(out, like, s.text)
				}
				*s = partialLine{}
			}
		}
	}
	like.Unfinished = !last
	for i := range l.streams {
		if s := &l.streams[i]; len(s.text) > 0 && (last || l.unfinished && s.fresh) {
			like.Stream, s.fresh = streamNames[i], false
			out = l.append(out, like, s.text)
		}
	}
	return out
}

var streamNames = [2]string{"stdout", "stderr"}

func streamIndex(stream launcher.Std) int {
	if stream == launcher.Stderr {
		return 1
	}
	return 0
}

func (l *lineReader) append(out []byte, line Line, text []byte) []byte {
	line.Text, line.Missed, l.missed = agent.Printable(string(launcher.Visible(text))), l.missed, false
	encoded, _ := json.Marshal(line) // of texts and numbers: cannot fail
	return append(append(out, encoded...), '\n')
}
