package control

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// A node that wants to join a job probes its agents: it sends each of them ProbeSize bytes, and gets them back with the time there. So it
// finds a network that loses large packets in one direction, and clocks that differ.
const (
	// ProbeSize is how many bytes a probe sends each way: many times what a packet has.
	ProbeSize    = 64 << 10
	probeTimeout = 5 * time.Second // of the server, to read and to write these bytes
	timeHeader   = "Gorun-Time"    // nanoseconds since 1970
)

// serveProbe sends back what it gets.
func (s *Server) serveProbe(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(probeTimeout)) // fails only if the client is gone
	sent, err := io.ReadAll(http.MaxBytesReader(w, r.Body, ProbeSize))
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	_ = control.SetWriteDeadline(time.Now().Add(probeTimeout))
	w.Header().Set(timeHeader, strconv.FormatInt(time.Now().UnixNano(), 10))
	_, _ = w.Write(sent) // the client finds out
}

// A Probe is what a probe of an agent has found.
type Probe struct {
	Ahead time.Duration // how far the agent's clock is ahead of this one, give or take half of Took
	Took  time.Duration
}

// Probe sends the agent long data, and gets it back.
func (c *Client) Probe(ctx context.Context) (Probe, error) {
	sent := bytes.Repeat([]byte("0123456789abcdef"), ProbeSize/16)
	begun := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gorun/probe", bytes.NewReader(sent))
	if err != nil {
		return Probe{}, err
	}
	answer, err := c.send(request)
	if err != nil {
		return Probe{}, err
	}
	at, err := strconv.ParseInt(answer.Header.Get(timeHeader), 10, 64)
	if err != nil {
		_ = answer.Body.Close() // it does not matter any more
		return Probe{}, fmt.Errorf("its answer has no time: %.40q", answer.Header.Get(timeHeader))
	}
	took := time.Since(begun) // the header has come
	got, err := readAll(answer.Body)
	switch {
	case err != nil:
		return Probe{}, err
	case !bytes.Equal(got, sent):
		return Probe{}, fmt.Errorf("of %d bytes it has sent back %d, or others", len(sent), len(got))
	}
	return Probe{Ahead: time.Unix(0, at).Sub(begun.Add(took / 2)), Took: took}, nil
}
