package drill

import (
	"bytes"
	"regexp"
	"strconv"
	"time"
)

// joinedLine is what an agent logs when it is in a new round.
var joinedLine = regexp.MustCompile(`^[0-9:.]+ \[DEBUG\] gorun: joined: round=([0-9]+) nodes=([0-9]+) node=([0-9]+) `)

// restartLine is what an agent logs when the job has used a restart: why, in which rank, and which restart it is.
var restartLine = regexp.MustCompile(`^[0-9:.]+ \[WARN\]  gorun: \[default\] Worker group FAILED\..*?; will [a-z ]+: (rank ([0-9]+) on .*); restart ([0-9]+) of [0-9]+`)

// errorFileLine is what an agent writes about the error file of a worker in the summary of a failure, or in the line of a node that leaves the
// summary to another one.
var errorFileLine = regexp.MustCompile(`^  error_file: (/.*)\n$|^gorun: .*; error file: (/[^;]*); `)

// A joining says that a node is in a round, as its agent has logged.
type joining struct{ round, nodes, groupRank int }

func joiningIn(line []byte) (j joining, ok bool) {
	m := joinedLine.FindSubmatch(line)
	if m == nil {
		return j, false
	}
	return joining{number(m[1]), number(m[2]), number(m[3])}, true
}

func rootCauseIn(line []byte) (c rootCause, ok bool) {
	m := restartLine.FindSubmatch(line)
	if m == nil {
		return c, false
	}
	return rootCause{number(m[3]), number(m[2]), string(m[1])}, true
}

// number reads digits.
func number(digits []byte) int {
	n, _ := strconv.Atoi(string(digits)) // the greatest int if there are too many digits
	return n
}

// read takes what the drill needs from a line that an agent, or a member of etcd, has logged.
func (s *testbed) read(p *process, host int, line []byte) {
	word := "hosting the rendezvous"
	switch {
	case host < 0:
		word = "serving"
	case host >= s.options.Nodes:
		word = "spares: "
	}
	if bytes.Contains(line, []byte(word)) {
		s.post(func(time.Time) { p.announced = true })
	}
	if why, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("gorun: ")); ok {
		failure := ": " + string(why)
		s.post(func(time.Time) { p.failure = failure })
	}
	if m := errorFileLine.FindSubmatch(line); m != nil {
		path := string(m[1]) + string(m[2]) // one of them is empty
		s.post(func(time.Time) { s.errors = append(s.errors, path) })
	}
	if c, ok := rootCauseIn(line); ok {
		s.post(func(time.Time) { s.seen.explain(p.name, c) })
	}
	if j, ok := joiningIn(line); ok && s.options.Program != nil {
		s.post(func(at time.Time) { s.seen.joined(at, host, j) })
	}
}
