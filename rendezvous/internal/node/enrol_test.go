package node

import (
	"errors"
	"testing"
)

// TestAdmitsWhereNobodyIs: a newcomer begins a job where there is none, or where it has had no round. The nodes of one that has had a round may
// come back: their leases may have run out while etcd did not answer.
func TestAdmitsWhereNobodyIs(t *testing.T) {
	begun := jobConfig{configDoc: configDoc{Job: "a"}, rev: 1}
	for _, c := range []struct {
		name   string
		found  precondition
		over   string
		begins bool
	}{
		{"no job", precondition{}, "", true},
		{"no round", precondition{config: begun}, "", true},
		{"a round", precondition{config: begun, current: 3}, "", false},
		{"a round, but nobody has come", precondition{config: begun, current: 3}, "a", true},
		{"another job meanwhile", precondition{config: begun, current: 3}, "b", false},
	} {
		begins, err := c.found.admit(enrolment{self: nodeDoc{}, over: c.over}, "key")
		_, deserted := errors.AsType[*desertedError](err)
		if begins != c.begins || deserted == begins {
			t.Errorf("%s: begins %t, %v", c.name, begins, err)
		}
	}
}
