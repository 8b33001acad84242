package frame

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Protocol is the version of all that this package describes.
const Protocol = 2

// A Hello is the first that a proxy says.
type Hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of gorun
	Addr     string `json:"addr"`    // where other machines are likely to reach it; empty: not known
	Port     int    `json:"port"`    // nobody listens on this one and the next; 0: not known
}

// A Job is what a proxy is to run. Texts are bytes, because JSON would change those that are not UTF-8.
type Job struct {
	Args  [][]byte `json:"args"` // gorun's, without its name
	Env   [][]byte `json:"env"`  // NAME=value, in addition to what the proxy has, or instead
	Dir   []byte   `json:"dir"`  // where the job runs; empty: where the proxy does
	Stdin bool     `json:"stdin"`

	Heartbeat time.Duration `json:"heartbeat"` // between two signs of life
	Silence   time.Duration `json:"silence"`   // without any sign of life, after which the launcher is lost
	Grace     time.Duration `json:"grace"`     // from SIGTERM to SIGKILL, if the launcher is lost
}

// A Cause says why a job has not succeeded on a host.
type Cause string

// The causes.
const (
	None      Cause = ""          // it has succeeded
	Worker    Cause = "worker"    // a worker of this host failed first
	Elsewhere Cause = "elsewhere" // a worker of another host failed first
	Timeout   Cause = "timeout"   // the time of --timeout was over, and this node knew of no worker that had failed
	Stopped   Cause = "stopped"   // a signal to gorun
	Drained   Cause = "drained"   // gorun drain, with which the others agree
	Died      Cause = "died"      // gorun itself has died, and has said nothing
	Other     Cause = "other"
)

var causes = []Cause{None, Worker, Elsewhere, Timeout, Stopped, Drained, Died, Other}

// An Outcome is how the job ended on a host.
type Outcome struct {
	Code   int    `json:"code"`              // the exit code of gorun
	Cause  Cause  `json:"cause,omitempty"`   //
	Text   string `json:"text,omitempty"`    // for people: the whole lines of a summary if a worker failed, else a sentence
	Signal int    `json:"signal,omitempty"`  // that stopped it
	Killed int    `json:"killed,omitempty"`  // workers that did not stop by themselves
	ByStop bool   `json:"by_stop,omitempty"` // gorun stop has ended it, and may have ended it on other hosts
}

// Failed reports whether the job ended because a worker failed.
func (o Outcome) Failed() bool { return o.Cause == Worker || o.Cause == Elsewhere }

// MaxText limits the text of an Outcome, in bytes: JSON may need six for each.
const MaxText = 128 << 10

// CutText returns a text that is short enough for an Outcome.
func CutText(s string) string {
	if len(s) <= MaxText {
		return s
	}
	const note = "\n(the rest is left out)\n"
	return strings.ToValidUTF8(s[:MaxText-len(note)], "") + note
}

// Encode returns a message as the payload of a frame.
func Encode(message any) []byte {
	b, err := json.Marshal(message)
	if err != nil { // of no message
		panic(err)
	}
	return b
}

// decode reads a message. What is in it is checked by check.
func decode[M any](payload []byte, check func(*M) error) (m M, err error) {
	if err := json.Unmarshal(payload, &m); err != nil {
		return m, err
	}
	return m, check(&m)
}

// ParseJob reads a Job.
func ParseJob(payload []byte) (Job, error) {
	return decode(payload, func(j *Job) error {
		for _, list := range [][][]byte{j.Args, j.Env, {j.Dir}} {
			for _, text := range list {
				if strings.Contains(string(text), "\x00") {
					return fmt.Errorf("%q contains a zero byte", text)
				}
			}
		}
		if j.Heartbeat <= 0 || j.Silence <= j.Heartbeat || j.Grace < 0 {
			return fmt.Errorf("heartbeat %v, silence %v, grace %v: want positive times, and the second to be longer than the first", j.Heartbeat, j.Silence, j.Grace)
		}
		return nil
	})
}

// ParseOutcome reads an Outcome.
func ParseOutcome(payload []byte) (Outcome, error) {
	return decode(payload, func(o *Outcome) error {
		switch {
		case o.Code < 0 || o.Code > 255:
			return fmt.Errorf("exit code %d", o.Code)
		case (o.Code == 0) != (o.Cause == None):
			return fmt.Errorf("exit code %d with the cause %q", o.Code, o.Cause)
		case !slices.Contains(causes, o.Cause):
			return fmt.Errorf("the cause %.20q, which does not exist", o.Cause)
		case o.Signal < 0 || o.Signal > 64 || o.Killed < 0:
			return fmt.Errorf("signal %d, %d killed", o.Signal, o.Killed)
		}
		return nil
	})
}
