package env

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gorun/gorun/env/death"
)

// MaxLine is how many bytes a document may have, the end of its line included.
const MaxLine = 1 << 20

// A Round is what an agent sends.
type Round struct {
	Round int               `json:"round"`          // its number, from 1 upward
	Over  bool              `json:"over,omitempty"` // it is over, and another one is to form
	Env   map[string]string `json:"env,omitempty"`  // what workers that start in it find in their environment (see Worker); empty if it is over
	Why   string            `json:"why,omitempty"`  // why it is over, in one line; empty: see Died
	Died  []death.Death     `json:"died,omitempty"` // the workers that have died in it, or in the round before if it begins; the root cause first
}

// MarshalJSON adds two fields to each death, for programs that do not use package comm.
func (r Round) MarshalJSON() ([]byte, error) {
	type round Round
	type dead struct {
		death.Death
		Hung   bool   `json:"hung,omitempty"`
		Reason string `json:"reason"` // in words, one line: "signal 9 (SIGKILL)"
	}
	with := struct {
		round
		Died []dead `json:"died,omitempty"`
	}{round: round(r)}
	for _, d := range r.Died {
		with.Died = append(with.Died, dead{d, d.Cause == death.Hang, d.String()})
	}
	return json.Marshal(with)
}

// A Message is what a worker sends: that it has entered a round, or that it revokes one.
type Message struct {
	Round  int    `json:"round"`
	Revoke string `json:"revoke,omitempty"` // why the worker ends this round for all ranks, one line; empty: it has entered the round

	Missing []int `json:"missing,omitempty"` // with Revoke: the ranks that have not come to the round, if that is why
}

// Worker returns what Env says about a worker.
func (r Round) Worker() (Worker, error) {
	return Parse(func(name string) (string, bool) { value, ok := r.Env[name]; return value, ok })
}

// check reports what is wrong with a document from outside.
func (r Round) check() error {
	switch {
	case r.Round < 1:
		return fmt.Errorf("its round is %d, want at least 1", r.Round)
	case r.Over == (len(r.Env) > 0):
		return errors.New("want a round that is over, or the environment of one that begins")
	}
	for _, d := range r.Died {
		if d.Rank < 0 || d.LocalRank < 0 {
			return fmt.Errorf("rank %d (local rank %d) has died: want ranks of at least 0", d.Rank, d.LocalRank)
		}
	}
	return nil
}

func (m Message) check() error {
	if m.Round < 1 {
		return fmt.Errorf("its round is %d, want at least 1", m.Round)
	}
	return nil
}

// A document is what one of the two sides sends.
type document interface {
	Round | Message
	check() error
}

// A Reader reads what the other side sends.
type Reader[D document] struct{ lines *bufio.Reader }

// NewReader returns a Reader of Rounds, or of Messages.
func NewReader[D document](r io.Reader) *Reader[D] { return &Reader[D]{bufio.NewReader(r)} }

// Read waits for the next document. The error is io.EOF when there is none, and otherwise says what is wrong with it.
func (r *Reader[D]) Read() (d D, err error) {
	line, err := r.line()
	if err != nil {
		return d, err
	}
	if err = json.Unmarshal(line, &d); err == nil {
		err = d.check()
	}
	if err != nil {
		return d, fmt.Errorf("a document of %d bytes: %w", len(line), err)
	}
	return d, nil
}

// line reads one line, of which it never keeps more than MaxLine.
func (r *Reader[D]) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		if len(line)+len(part) > MaxLine {
			return nil, fmt.Errorf("a document has more than %d bytes", MaxLine)
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(bytes.TrimSpace(line)) > 0:
			return nil, io.ErrUnexpectedEOF
		case err != nil || len(bytes.TrimSpace(line)) > 0:
			return line, err
		default: // an empty line
			line = line[:0]
		}
	}
}

// Encode returns a document as a line. If a Round would be too long, Encode leaves out what the dead wrote to stderr, and then the last of the
// dead.
func Encode[D document](d D) []byte {
	line, _ := json.Marshal(d) // of strings and numbers: cannot fail
	if r, ok := any(d).(Round); ok && len(line) >= MaxLine && len(r.Died) > 0 {
		return Encode(r.shorter(len(line) - MaxLine + 1))
	}
	return append(line, '\n')
}

// shorter returns the Round without some lines on stderr, of at least so many bytes in all. If there are none, it leaves out half of the dead.
func (r Round) shorter(bytes int) Round {
	r.Died = slices.Clone(r.Died)
	lost := 0
	for i := len(r.Died) - 1; i >= 0 && lost < bytes; i-- {
		for _, line := range r.Died[i].Stderr {
			lost += len(line)
		}
		r.Died[i].Stderr = nil
	}
	if lost == 0 {
		r.Died = r.Died[:len(r.Died)/2]
	}
	return r
}
