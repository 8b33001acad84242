package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A result is what one simulation has shown.
type result struct {
	Nodes, Clients int
	Phases         []phase
	States         []state
}

// A phase is something that happens to the whole job.
type phase struct {
	Name    string
	Times   int     // that it happened; the others are means
	Seconds float64 // until the last node was in the new round
	Worst   float64 // of the seconds
	CPU     float64 // seconds of this process
	traffic
}

// measure has do happen so many times.
func (r *result) measure(name string, times int, c *counter, do func() error) error {
	p := phase{Name: name, Times: times}
	before, worked := c.now(), cpu()
	for range times {
		began := time.Now()
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took := time.Since(began).Seconds()
		p.Seconds += took / float64(times)
		p.Worst = max(p.Worst, took)
	}
	p.CPU = (cpu() - worked) / float64(times)
	p.traffic = c.now().since(before, times)
	r.Phases = append(r.Phases, p)
	return nil
}

func (r *result) print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "%d nodes, %d connections\n", r.Nodes, r.Clients)
	_, _ = fmt.Fprintf(w, "  %-34s %9s %9s %9s %9s %9s %9s %9s\n", "", "seconds", "worst", "CPU s", "requests", "answers", "MB sent", "MB got")
	for _, p := range r.Phases {
		_, _ = fmt.Fprintf(w, "  %-34s %9.3f %9.3f %9.3f %9d %9d %9.2f %9.2f\n",
			p.title(), p.Seconds, p.Worst, p.CPU, p.Requests, p.Answers, float64(p.Sent)/1e6, float64(p.Got)/1e6)
	}
	_, _ = fmt.Fprintf(w, "  %-34s %9s %9s %9s %9s %9s %9s\n", "", "goroutines", "files", "heap MiB", "keys", "data MiB", "file MiB")
	for _, s := range r.States {
		_, _ = fmt.Fprintf(w, "  %-34s %9d %9d %9.1f %9d %9.2f %9.2f\n", s.After, s.Goroutines, s.Descriptors, s.HeapMiB, s.Keys, s.DataMiB, s.FileMiB)
	}
	_, _ = fmt.Fprintln(w, strings.Repeat("-", 106))
}

func (p phase) title() string {
	if p.Times == 1 {
		return p.Name
	}
	return fmt.Sprintf("%s, mean of %d", p.Name, p.Times)
}
