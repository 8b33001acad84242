package drill

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestAgentLog: the agent's lines are found and kept however they are cut, and however much its workers write before.
func TestAgentLog(t *testing.T) {
	const (
		second = "08:14 [DEBUG] gorun: joined: round=2 nodes=3 node=1 master_addr=x\n"
		third  = "08:15 [DEBUG] gorun: joined: round=3 nodes=2 node=0 master_addr=x\n"
		other  = "08:15 [WARN]  gorun: a worker says " + second
	)
	endless := "[0] " + strings.Repeat("x", 2*maxLine) + "\n"
	text := "[1] " + second + second + endless + other + "[0] \n" + third + "[0] half a line"
	for _, size := range []int{1, 7, 1000, maxLine, len(text)} {
		var own, workers bytes.Buffer
		var got []joining
		l := &agentLog{own: &own, workers: &boundedLog{&workers, 100}, line: func(line []byte) {
			if j, ok := joiningIn(line); ok {
				got = append(got, j)
			}
		}}
		for at := 0; at < len(text); at += size {
			_, _ = l.Write([]byte(text[at:min(at+size, len(text))])) // a buffer takes everything
		}
		l.flush()
		if want := []joining{{2, 3, 1}, {3, 2, 0}}; !reflect.DeepEqual(got, want) || own.String() != second+other+third {
			t.Errorf("in parts of %d bytes: %v, kept is %q", size, got, own.String())
		}
		if !strings.HasPrefix(workers.String(), "[1] "+second) || workers.Len() > 200 {
			t.Errorf("in parts of %d bytes: the workers' lines are %.300q", size, workers.String())
		}
	}
}

// TestBoundedLog: however much is written, the beginning is kept, and the writer does not fail.
func TestBoundedLog(t *testing.T) {
	var kept bytes.Buffer
	l := &boundedLog{to: &kept, left: 10}
	for _, text := range []string{"four", "four", "four", "four"} {
		if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if want := "fourfourfo\n(the rest of the output is left out)\n"; kept.String() != want {
		t.Errorf("%q, want %q", kept.String(), want)
	}
}

// fullDisk is what a file on a full disk is to its writer.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestLogFile: a log that cannot be written is reported once, and does not fail, which would end the agent.
func TestLogFile(t *testing.T) {
	var reported []string
	l := &logFile{to: fullDisk{}, fail: func(err error) { reported = append(reported, err.Error()) }}
	for range 2 {
		if n, err := fmt.Fprint(l, "text"); n != 4 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if len(reported) != 1 || reported[0] != "cannot keep the logs: no space left" {
		t.Errorf("%q", reported)
	}
}
