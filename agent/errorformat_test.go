package agent

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestParseReport(t *testing.T) {
	when := time.Unix(1700000000, 0)
	for _, c := range []struct {
		name, text string
		want       ErrorFile // without Document, which is there unless there is a Problem
	}{
		{"torch's", `{"message":{"message":"RuntimeError: boom","extraInfo":{"py_callstack":"Traceback\n  x","timestamp":"1700000000"}}}` + "\n",
			ErrorFile{Message: "RuntimeError: boom", Callstack: "Traceback\n  x", At: when}},
		{"flat", `{"message":"plain text","timestamp":1700000000}`, ErrorFile{Message: "plain text", At: when}},
		{"number inside, fraction", `{"message":{"message":"m","extraInfo":{"timestamp":1700000000.9}}}`, ErrorFile{Message: "m", At: when}},
		{"string outside", `{"message":{"message":"m"},"timestamp":"1.7e9"}`, ErrorFile{Message: "m", At: when}},
		{"call stack only", `{"message":{"extraInfo":{"py_callstack":"s"}}}`, ErrorFile{Callstack: "s"}},
		{"times that are none", `{"message":"m","timestamp":"yesterday"}`, ErrorFile{Message: "m"}},
		{"a time before 1970", `{"message":"m","timestamp":-5}`, ErrorFile{Message: "m"}},
		{"a time after 9999", `{"message":"m","timestamp":1e300}`, ErrorFile{Message: "m"}},
		{"wrong types inside", `{"message":{"message":["a", 1],"extraInfo":[1],"errorCode":"x"}}`, ErrorFile{Message: `["a", 1]`}},
		{"a number for a message", `{"message":5,"timestamp":{}}`, ErrorFile{Message: "5"}},
		{"a number for a call stack", `{"message":{"message":null,"extraInfo":{"py_callstack":7}}}`, ErrorFile{Callstack: "7"}},
		{"not UTF-8", "{\"message\":\"caf\xe9\"}", ErrorFile{Message: "caf\uFFFD"}},
		{"no message", `{"error":"boom"}`, ErrorFile{Problem: "it has no message", Message: `{"error":"boom"}`}},
		{"null", `{"message":null}`, ErrorFile{Problem: "it has no message", Message: `{"message":null}`}},
		{"empty", "", ErrorFile{Problem: "it is empty"}},
		{"blank", " \n", ErrorFile{Problem: "it is empty"}},
		{"truncated", `{"message":{"message":"boom","extraIn`, ErrorFile{Problem: "it is not JSON", Message: `{"message":{"message":"boom","extraIn`}},
		{"text", "boom\nbang", ErrorFile{Problem: "it is not JSON", Message: "boom\nbang"}},
		{"a list", `["boom"]`, ErrorFile{Problem: "it is not a JSON object", Message: `["boom"]`}},
		{"nothing", "null", ErrorFile{Problem: "it is not a JSON object", Message: "null"}},
		{"deep", strings.Repeat("[", 20000), ErrorFile{Problem: "it is not JSON", Message: strings.Repeat("[", shownBytes) + "..."}},
		{"long text", strings.Repeat("x\n", 30), ErrorFile{Problem: "it is not JSON", Message: strings.TrimSpace(strings.Repeat("x\n", shownLines))}},
	} {
		got := parseErrorFile([]byte(c.text))
		if (got.Document == nil) != (c.want.Problem != "" && c.want.Problem != "it has no message") {
			t.Errorf("%s: document %q", c.name, got.Document)
		}
		got.Document = nil
		if got.Unreachable != nil {
			t.Errorf("%s: unreachable: %+v", c.name, got.Unreachable)
		}
		if got.Message != c.want.Message || got.Callstack != c.want.Callstack || !got.At.Equal(c.want.At) || got.Problem != c.want.Problem {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

// TestUnreachablePeers: those are read that have an address, and no more than a few.
func TestUnreachablePeers(t *testing.T) {
	for text, want := range map[string]int{
		`[{"rank":3,"address":"10.0.0.2:4711"}]`:                                                                                                             1,
		`[{"rank":0,"address":"[::1]:1"},{"rank":1,"address":"node-1.example:65535"}]`:                                                                       2,
		`[{"rank":-1,"address":"a:1"},{"rank":1},{"rank":1,"address":"a"}]`:                                                                                  0,
		`[{"rank":1,"address":"a:0"},{"rank":1,"address":":1"},{"rank":1,"address":"a:65536"},{"rank":1,"address":"a b:1"},{"rank":1,"address":"\u001b:1"}]`: 0,
		`[{"rank":1,"address":"` + strings.Repeat("a", 400) + `:1"}]`:                                                                                        0,
		`{"rank":1,"address":"a:1"}`:                                       0,
		`[` + strings.Repeat(`{"rank":1,"address":"a:1"},`, 100) + `null]`: 16,
	} {
		if got := parseErrorFile([]byte(`{"message":"m","unreachable":` + text + `}`)); len(got.Unreachable) != want || got.Message != "m" {
			t.Errorf("%s: %+v, want %d", text, got.Unreachable, want)
		}
	}
}

// TestFailedPeer: what is read of the rank because of which a worker failed.
func TestFailedPeer(t *testing.T) {
	for text, want := range map[string]*death.Peer{
		`{"rank":3,"finder":1}`:       {Rank: 3, Finder: 1},
		`{"rank":0}`:                  {},
		`{"rank":3}`:                  {Rank: 3, Finder: 3},
		`{"rank":1048575,"finder":0}`: {Rank: 1048575},
		`{"rank":1048576,"finder":0}`: nil,
		`{"rank":0,"finder":1048576}`: nil,
		`{"rank":-1,"finder":0}`:      nil,
		`{"rank":1e99}`:               nil,
		`{"rank":"3"}`:                nil,
		`{"finder":3}`:                nil,
		`{}`:                          nil,
		`null`:                        nil,
		`3`:                           nil,
		`[{"rank":3}]`:                nil,
	} {
		if got := parseErrorFile([]byte(`{"message":"m","failed_peer":` + text + `}`)); !reflect.DeepEqual(got.FailedPeer, want) || got.Message != "m" {
			t.Errorf("%s: %+v, want %+v", text, got.FailedPeer, want)
		}
	}
}

// FuzzReport: no file breaks anything, and the agent can always hand on what it has understood of it.
func FuzzReport(f *testing.F) {
	for _, seed := range []string{
		`{"message":{"message":"RuntimeError: boom","extraInfo":{"py_callstack":"Traceback\n  x","timestamp":"1700000000"}}}`,
		`{"message":"plain text","timestamp":1700000000}`, `{"message":{"errorCode":1e999999}}`, `{"message":[]}`, `{"messAge":[]}`, "{}", "null", "\xff", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		testkit.AllocatesAtMost(t, 64*len(data), func() { parseErrorFile(data) })
		r := parseErrorFile(data)
		if !utf8.ValidString(r.Message + r.Callstack + string(r.Document)) {
			t.Errorf("%+v is not UTF-8", r)
		}
		if r.Message == "" && r.Callstack == "" && r.Problem == "" {
			t.Errorf("%+v says nothing, and not why", r)
		}
		e := WorkerError{Root: exited(0, 3).Death, ErrorFiles: map[int]ErrorFile{0: r}}
		e.Summary()
		text, err := e.document()
		if err != nil {
			t.Fatalf("document: %v", err)
		}
		var document, message map[string]json.RawMessage // a struct would take other keys as well
		if err := errors.Join(json.Unmarshal(text, &document), json.Unmarshal(document["message"], &message)); err != nil || string(message["errorCode"]) != "3" {
			t.Errorf("document %s: %v, want an object with errorCode 3", text, err)
		}
	})
}
