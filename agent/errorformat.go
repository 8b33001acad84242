package agent

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// An ErrorFile is the contents of a worker's error file (TORCHELASTIC_ERROR_FILE).
type ErrorFile struct {
	File      string          // its path
	Message   string          // of the error, one line or several; empty: none
	Callstack string          // as the worker's language prints it; empty: none
	At        time.Time       // of the error, by the worker, to the second; zero: not said
	Written   time.Time       // the file, by its file system
	Document  json.RawMessage // all of the file, a JSON object; nil: it is none
	Problem   string          // why it is of little use; Message is then how its text begins. Empty: none
	NoRestart bool            // the worker says that another attempt would fail as well: "restart": false

	Unreachable []rendezvous.Peer // that gave the worker no answer: "unreachable": [{"rank": 3, "address": "10.0.0.2:4711"}]
	FailedPeer  *death.Peer       // because of which it failed: "failed_peer": {"rank": 3, "finder": 0}; nil: none
}

// parseErrorFile parses either of the shapes that torchrun accepts, and uses what it can of anything else:
//
//	{"message": {"message": "boom", "extraInfo": {"py_callstack": "...", "timestamp": "1700000000"}}}
//	{"message": "boom", "timestamp": 1700000000}
//
// In addition to the message, "restart": false asks for no restart, "failed_peer" names the rank because of which this one failed,
// and "unreachable" names ranks that did not answer. Package comm writes these.
func parseErrorFile(data []byte) ErrorFile {
	text := bytes.TrimSpace(bytes.ToValidUTF8(data, []byte("\uFFFD")))
	var document, message, extra map[string]json.RawMessage
	switch {
	case len(text) == 0:
		return ErrorFile{Problem: "it is empty"}
	case !json.Valid(text):
		return ErrorFile{Problem: "it is not JSON", Message: beginning(string(text))}
	case json.Unmarshal(text, &document) != nil || document == nil:
		return ErrorFile{Problem: "it is not a JSON object", Message: beginning(string(text))}
	}
	r, stamp := ErrorFile{Document: text, NoRestart: string(document["restart"]) == "false"}, document["timestamp"]
	r.Unreachable, r.FailedPeer = asPeers(document["unreachable"]), asFailedPeer(document["failed_peer"])
	if json.Unmarshal(document["message"], &message) == nil && message != nil {
		_ = json.Unmarshal(message["extraInfo"], &extra) // one that is no object says nothing
		r.Message, r.Callstack = asText(message["message"]), asText(extra["py_callstack"])
		if inner, ok := extra["timestamp"]; ok {
			stamp = inner
		}
	} else {
		r.Message = asText(document["message"])
	}
	r.At = asTime(stamp)
	if r.Message == "" && r.Callstack == "" {
		r.Problem, r.Message = "it has no message", beginning(string(text))
	}
	return r
}

// maxPeers is how many unreachable peers are read.
const maxPeers = 16

// asPeers returns the peers that have an address, and ignores anything else.
func asPeers(value json.RawMessage) (peers []rendezvous.Peer) {
	var all []rendezvous.Peer
	if json.Unmarshal(value, &all) != nil {
		return nil
	}
	for _, p := range all {
		if len(peers) < maxPeers && p.Rank >= 0 && isAddress(p.Addr) {
			peers = append(peers, p)
		}
	}
	return peers
}

// asFailedPeer accepts possible ranks, and ignores anything else. Without a finder, the rank itself counts as the finder.
func asFailedPeer(value json.RawMessage) *death.Peer {
	p := death.Peer{Rank: -1, Finder: -1}
	if json.Unmarshal(value, &p) != nil || p.Rank < 0 || max(p.Rank, p.Finder) >= rendezvous.WorldLimit {
		return nil
	}
	if p.Finder < 0 {
		p.Finder = p.Rank
	}
	return &p
}

// isAddress reports whether text is a host and a port.
func isAddress(text string) bool {
	e, err := rendezvous.ParseEndpoint(text, 0)
	return err == nil && e.Port > 0
}

// asText returns the value of a string, and the JSON text of anything else.
func asText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil { // null leaves it empty
		return text
	}
	return string(value)
}

// asTime accepts Unix time in seconds, as a number or a string. It ignores times before 1970 and after 9999.
func asTime(value json.RawMessage) time.Time {
	seconds, err := strconv.ParseFloat(strings.Trim(string(value), `"`), 64)
	if err != nil || !(0 < seconds && seconds < 253402300800) {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

const (
	shownLines = 20   // of a text that nobody has asked for
	shownBytes = 1024 // of each line
)

// beginning returns the first lines of a text.
func beginning(text string) string {
	lines := strings.SplitN(text, "\n", shownLines+1)
	lines = lines[:min(len(lines), shownLines)]
	for i := range lines {
		lines[i] = cut(lines[i])
	}
	return strings.Join(lines, "\n")
}

// cut shortens a line to shownBytes.
func cut(line string) string {
	if len(line) <= shownBytes {
		return line
	}
	return strings.ToValidUTF8(line[:shownBytes], "") + "..." // no half character
}
