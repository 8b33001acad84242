package rendezvous

import "encoding/json"

// A Record is a decision of Form, and the state from which it follows. Leaders log it, so that anybody can see
// afterwards why they decided so: see TestReplay.
type Record struct {
	State    State
	Decision Decision
}

// String is one line of JSON.
func (r Record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
