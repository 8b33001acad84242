package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
)

const (
	commandTimeout = 5 * time.Second        // in which the agent's loop takes a command
	answerTimeout  = 30 * time.Second       // in which it answers
	writeTimeout   = 10 * time.Second       // of one document or line, to a client that does not read
	askTimeout     = time.Second            // in which a worker says what it does
	freshTime      = 300 * time.Millisecond // for which its answer is used again
)

// snapshot returns the newest snapshot, with what the node waits for and what its workers do; nil: there is none yet.
func (s *Server) snapshot(ctx context.Context) *status.Node {
	s.mu.Lock()
	last, waiting := s.node, s.waiting
	s.mu.Unlock()
	if last == nil {
		return nil
	}
	n := *last
	n.At, n.Waiting, n.Workers = time.Now(), waiting, s.withDoing(ctx, n.Workers)
	return &n
}

// withDoing returns workers with what they do. Of clients who ask at the same time only one asks the workers.
func (s *Server) withDoing(ctx context.Context, workers []status.Worker) []status.Worker {
	s.asking.Lock()
	defer s.asking.Unlock()
	same := func(a, b status.Worker) bool { return a.Pid == b.Pid && a.State == b.State && a.Rank == b.Rank }
	if time.Since(s.asked) < freshTime && slices.EqualFunc(workers, s.of, same) {
		return s.of
	}
	all := slices.Clone(workers)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for i := range all {
		if w := &all[i]; w.State == status.WorkerRunning && w.ProgressFile != "" {
			asking.Go(func() {
				if said := s.config.Ask(ctx, w.ProgressFile); said != nil {
					w.Doing, w.Collectives = said.Activity, said.Collectives
				}
			})
		}
	}
	asking.Wait()
	s.asked, s.of = time.Now(), all
	return all
}

func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request) {
	n := s.snapshot(r.Context())
	if n == nil {
		refuse(w, http.StatusServiceUnavailable, errors.New("the job is just starting"))
		return
	}
	write(w, http.StatusOK, n)
}

// A Reply is the answer to a command.
type Reply struct {
	Error  string               `json:"error,omitempty"` // why it was refused; empty: it is carried out
	Stacks []agent.WorkerStacks `json:"stacks,omitempty"`
	Files  string               `json:"files,omitempty"`
	Hint   string               `json:"hint,omitempty"`
}

func (s *Server) serveCommand(w http.ResponseWriter, r *http.Request, kind agent.CommandKind) {
	force, err := parseSwitch(r, "force")
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	command := agent.Command{Kind: kind, Force: force}
	if text := r.URL.Query().Get("round"); text != "" {
		if command.Round, err = strconv.Atoi(text); err != nil {
			refuse(w, http.StatusBadRequest, fmt.Errorf("round=%.20q: want a number", text))
			return
		}
	}
	if kind == agent.CommandScale {
		if command.Nodes, err = parseNodes(r); err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
	}
	answer := make(chan agent.Answer, 1)
	command.Answer = answer
	select {
	case s.commands <- command:
	case <-time.After(commandTimeout):
		refuse(w, http.StatusServiceUnavailable, errors.New("the agent does not take commands now"))
		return
	case <-r.Context().Done():
		refuse(w, http.StatusServiceUnavailable, errors.New("the job is ending on this node"))
		return
	}
	select {
	case a := <-answer:
		reply := Reply{Stacks: a.Stacks, Files: a.Files, Hint: a.Hint}
		if a.Err != nil {
			reply.Error = oneLine(a.Err)
		}
		write(w, http.StatusOK, reply)
	case <-time.After(answerTimeout):
		refuse(w, http.StatusGatewayTimeout, fmt.Errorf("no answer within %v", answerTimeout))
	case <-r.Context().Done():
	}
}

// parseNodes reads how many nodes a round may have: nodes=MIN:MAX.
func parseNodes(r *http.Request) (nodes [2]int, err error) {
	text := r.URL.Query().Get("nodes")
	low, high, _ := strings.Cut(text, ":")
	for i, part := range []string{low, high} {
		if nodes[i], err = strconv.Atoi(part); err != nil || nodes[i] < 1 {
			return nodes, fmt.Errorf("nodes=%.20q: want MIN:MAX", text)
		}
	}
	if nodes[0] > nodes[1] {
		return nodes, fmt.Errorf("nodes=%.20q: the minimum exceeds the maximum", text)
	}
	return nodes, nil
}

// parseSwitch reads a parameter that is there or not, or a number.
func parseSwitch(r *http.Request, name string) (bool, error) {
	if !r.URL.Query().Has(name) {
		return false, nil
	}
	text := r.URL.Query().Get(name)
	if text == "" {
		return true, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s=%.20q: want 1 or 0", name, text)
	}
	return on, nil
}

func refuse(w http.ResponseWriter, code int, err error) {
	write(w, code, Reply{Error: oneLine(err)})
}

func write(w http.ResponseWriter, code int, document any) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only if the client is gone
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(document) // the client may be gone
}
