package frame

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

func TestRead(t *testing.T) {
	long := strings.Repeat("x", MaxData)
	var b []byte
	b = Append(b, Start, []byte("{}"))
	b = Append(b, Stdin, nil)
	b = Append(b, Stdout, []byte(long))
	b = AppendTaken(b, Stderr, Window)
	b = Append(b, Signal, []byte{15})
	r := bytes.NewReader(b)
	for _, want := range []struct {
		kind    Kind
		payload string
	}{{Start, "{}"}, {Stdin, ""}, {Stdout, long}, {Taken, "\x06\x00\x04\x00\x00"}, {Signal, "\x0f"}} {
		kind, payload, err := Read(r)
		if err != nil || kind != want.kind || string(payload) != want.payload {
			t.Errorf("got %d %q %v, want %d %q", kind, payload, err, want.kind, want.payload)
		}
	}
	if _, _, err := Read(r); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	for text, want := range map[string]string{
		"\x00\x00\x00\x00\x00":         "a frame of kind 0, which does not exist",
		"\x0b\x00\x00\x00\x00":         "a frame of kind 11, which does not exist",
		"\x0a\x00\x00\x00\x00":         "a frame of kind 10 with 0 bytes: want 4 to 4",
		"\x05\x00\x00\x80\x01":         "a frame of kind 5 with 32769 bytes: want 1 to 32768",
		"\x05\x00\x00\x00\x00":         "a frame of kind 5 with 0 bytes: want 1 to 32768",
		"\x01\xff\xff\xff\xff":         "a frame of kind 1 with 4294967295 bytes: want 2 to 8388608",
		"\x04\x00\x00\x00\x01x":        "a frame of kind 4 with 1 bytes: want 0 to 0",
		"\x01\x00\x00":                 "unexpected EOF",
		"\x01\x00\x00\x00\x02{":        "unexpected EOF",
		"\x07\x00\x10\x00\x00" + "{\"": "unexpected EOF",
	} {
		if _, _, err := Read(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestParseTaken(t *testing.T) {
	for payload, want := range map[string]bool{
		"\x02\x00\x00\x00\x01": true, "\x06\x00\x04\x00\x00": true,
		"\x06\x00\x04\x00\x01": false, "\x01\x00\x00\x00\x01": false, "\x00\xff\xff\xff\xff": false,
	} {
		if _, _, err := ParseTaken([]byte(payload)); (err == nil) != want {
			t.Errorf("%q: %v", payload, err)
		}
	}
}

func TestParseScaled(t *testing.T) {
	for _, least := range []int{1, 3, MaxNodes} {
		kind, payload, err := Read(bytes.NewReader(AppendScaled(nil, least)))
		got, parseErr := ParseScaled(payload)
		if kind != Scaled || got != least || errors.Join(err, parseErr) != nil {
			t.Errorf("%d: got kind %d with %d, %v, %v", least, kind, got, err, parseErr)
		}
	}
	for _, payload := range []string{"\x00\x00\x00\x00", "\x00\x01\x00\x01", "\xff\xff\xff\xff"} {
		if least, err := ParseScaled([]byte(payload)); err == nil {
			t.Errorf("%q: %d", payload, least)
		}
	}
}

func TestReadHello(t *testing.T) {
	hello := Hello{Protocol: Protocol, Version: "0.1.0", Addr: "10.0.0.1", Port: 20000}
	line := string(AppendHello(nil, hello))
	for _, noise := range []string{"", "\n", "Welcome!\n", "\x01gorun-", "\x01gorun-agen\x01", "no line break", strings.Repeat("a line of a motd\n", 1000)} {
		r := bufio.NewReader(strings.NewReader(noise + line + "rest"))
		got, err := ReadHello(r)
		if err != nil || got != hello {
			t.Errorf("after %.20q: %+v, %v", noise, got, err)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "rest" {
			t.Errorf("after %.20q, %q is left", noise, rest)
		}
	}
	for text, want := range map[string]string{
		"":                                       "EOF",
		"Welcome!\n":                             "EOF",
		line[:len(line)-1]:                       "unexpected EOF",
		magic + "{}x\n":                          "its first line: invalid character 'x' after top-level value",
		magic + "{\"port\":-1}\n":                "its first line: port -1",
		magic + strings.Repeat("{", 5000) + "\n": "its first line has more than 4096 bytes",
		strings.Repeat("noise ", 20000):          "nothing from gorun after 65536 bytes of other output",
	} {
		_, err := ReadHello(bufio.NewReader(strings.NewReader(text)))
		noise, ok := errors.AsType[*NoiseError](err)
		if !ok || err.Error() != want {
			t.Errorf("%.30q: %v, want %s", text, err, want)
		} else if !strings.HasPrefix(text, magic) && len(text) < 100 && !strings.HasPrefix(text, string(noise.Noise)) {
			t.Errorf("%.30q: noise %q", text, noise.Noise)
		} else if len(noise.Noise) > noiseEnd {
			t.Errorf("%.30q: %d bytes of noise are kept", text, len(noise.Noise))
		}
	}
}

func TestMessages(t *testing.T) {
	job := Job{
		Args: [][]byte{[]byte("n1"), []byte("not \xff UTF-8")}, Env: [][]byte{[]byte("A=1")}, Dir: []byte("/"), Stdin: true,
		Heartbeat: time.Second, Silence: 5 * time.Second, Grace: 30 * time.Second,
	}
	if got, err := ParseJob(Encode(job)); err != nil || !reflect.DeepEqual(got, job) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, change := range []func(*Job){
		func(j *Job) { j.Args[0] = []byte("a\x00b") },
		func(j *Job) { j.Heartbeat = 0 },
		func(j *Job) { j.Silence = j.Heartbeat },
		func(j *Job) { j.Grace = -1 },
	} {
		wrong := job
		wrong.Args = [][]byte{nil}
		change(&wrong)
		if _, err := ParseJob(Encode(wrong)); err == nil {
			t.Errorf("accepted: %+v", wrong)
		}
	}
	outcome := Outcome{Code: 143, Cause: Stopped, Text: "stopped", Signal: 15, Killed: 2}
	if got, err := ParseOutcome(Encode(outcome)); err != nil || got != outcome {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, wrong := range []Outcome{{Code: 256, Cause: Other}, {Code: -1, Cause: Other}, {Code: 1}, {Cause: Other}, {Code: 1, Cause: "new"}, {Code: 1, Cause: Stopped, Signal: 65}, {Code: 1, Cause: Stopped, Killed: -1}} {
		if _, err := ParseOutcome(Encode(wrong)); err == nil {
			t.Errorf("accepted: %+v", wrong)
		}
	}
	worst := Outcome{Code: 1, Cause: Worker, Text: CutText(strings.Repeat("\x01", 2*MaxText))}
	if n := len(Encode(worst)); n > MaxOutcome {
		t.Errorf("the longest text takes %d bytes, and %d are allowed", n, MaxOutcome)
	}
	if got := CutText("short"); got != "short" {
		t.Errorf("got %q", got)
	}
}

// FuzzRead: whatever comes takes little memory, and what is read is what was written.
func FuzzRead(f *testing.F) {
	f.Add(AppendTaken(Append(nil, Stdout, []byte("x")), Stdout, 1))
	f.Add(AppendScaled(nil, 3))
	f.Add([]byte("\x01\x00\x7f\xff\xff"))
	f.Add([]byte("\x02\x00\x00\x00\x00\x03\x00\x00\x00\x01\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		testkit.AllocatesAtMost(t, 4*len(b)+4*piece, func() {
			var again []byte
			for r := bytes.NewReader(b); ; {
				kind, payload, err := Read(r)
				if err != nil {
					break
				}
				again = Append(again, kind, payload)
			}
			if !bytes.HasPrefix(b, again) {
				t.Errorf("%q was read as %q", b, again)
			}
		})
	})
}

// FuzzHello: whatever a host prints is refused in one line, or is a Hello that can be used.
func FuzzHello(f *testing.F) {
	f.Add(AppendHello([]byte("motd\n"), Hello{Protocol: 1, Port: 20000}))
	f.Add([]byte(magic + "{\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadHello(bufio.NewReader(bytes.NewReader(b)))
		if err != nil && strings.ContainsAny(err.Error(), "\n\x00\x1b") {
			t.Errorf("%q: %q", b, err)
		}
		if err == nil && (h.Port < 0 || h.Port > 65534) {
			t.Errorf("%q: port %d", b, h.Port)
		}
	})
}

// FuzzMessages: a message that is accepted keeps to the rules.
func FuzzMessages(f *testing.F) {
	f.Add(Encode(Job{Args: [][]byte{[]byte("x")}, Heartbeat: 1, Silence: 2}))
	f.Add(Encode(Outcome{Code: 1, Cause: Worker, Text: "x"}))
	f.Add(AppendScaled(nil, 1)[header:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == limits[Scaled].most {
			if least, err := ParseScaled(b); err == nil && (least < 1 || least > MaxNodes) {
				t.Errorf("%q: %d nodes", b, least)
			}
		}
		if j, err := ParseJob(b); err == nil && (j.Heartbeat <= 0 || j.Silence <= j.Heartbeat || j.Grace < 0) {
			t.Errorf("%q: %+v", b, j)
		}
		if o, err := ParseOutcome(b); err == nil && (o.Code < 0 || o.Code > 255) {
			t.Errorf("%q: %+v", b, o)
		}
	})
}
