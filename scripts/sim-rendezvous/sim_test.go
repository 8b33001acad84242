package main

import (
	"strings"
	"testing"
	"time"
)

// TestSimulation: nothing grows with the number of rounds.
func TestSimulation(t *testing.T) {
	const nodes, rounds = 50, 10
	r, err := simulate(t.Context(), nodes, options{clients: 5, rounds: rounds, kill: 10, ttl: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Phases {
		if p.Seconds <= 0 || p.Requests < nodes || p.Answers < nodes || p.Sent == 0 || p.Got == 0 {
			t.Errorf("%+v", p)
		}
	}
	if len(r.Phases) != 6 || len(r.States) != 4 {
		t.Fatalf("%d phases and %d states, want 6 and 4", len(r.Phases), len(r.States))
	}
	first, last := r.States[1], r.States[3]
	// Whoever leads has some goroutines more, and etcd keeps books.
	if last.Goroutines > first.Goroutines+nodes/2 || last.Descriptors > first.Descriptors+5 || last.Keys != first.Keys || last.DataMiB > first.DataMiB+2 {
		t.Errorf("after %d rounds there is\n%+v, and before was\n%+v", rounds, last, first)
	}
	var table strings.Builder
	r.print(&table)
	for _, want := range []string{"50 nodes, 5 connections", "all join", "5 are killed", "a worker fails, mean of 5", "all rounds"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &table)
		}
	}
}

// TestExpiry: nodes whose leases run out are missed, too.
func TestExpiry(t *testing.T) {
	if _, err := simulate(t.Context(), 4, options{rounds: 1, kill: 25, ttl: time.Second, expire: true}); err != nil {
		t.Fatal(err)
	}
}
