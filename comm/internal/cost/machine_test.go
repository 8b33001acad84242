package cost

import (
	"testing"
	"time"
)

// Messages from one rank to another follow each other inside a machine too, and do not share the rate with those to others.
func TestMessagesInsideAMachine(t *testing.T) {
	s := Apart(Links{Machine: Link{Latency: us, Gap: 1000}}, 2, 1000)
	s.Machines = []int{0, 0}
	if got := timeOf(t, s, by(t, "broadcast", "binomial"), "broadcast", 10_000); got != 11*us {
		t.Errorf("10 messages of a microsecond take %v", got)
	}
	s = Apart(s.Links, 3, 1000)
	s.Machines = []int{0, 0, 0}
	if got := timeOf(t, s, by(t, "scatter", "linear"), "scatter", 30_000); got != 11*us {
		t.Errorf("10 messages of a microsecond to each of two ranks take %v", got)
	}
}

// Rails share the link of a machine, but not its processors if there are enough. If there are too few, ranks act in turns and sleep.
func TestWhatRanksOfAMachineShare(t *testing.T) {
	for _, c := range []struct {
		rails, processors int
		link              Link
		want              time.Duration
	}{
		{1, 0, Link{Latency: 5 * us, Gap: 1000}, 15 * us},
		{3, 0, Link{Latency: 5 * us, Gap: 1000}, 35 * us},
		{3, 3, Link{Latency: 5 * us, Overhead: us, Wakeup: us}, 7 * us},
		{4, 2, Link{Latency: 5 * us, Overhead: us, Wakeup: us}, 5*us + 2*us + 2*2*us - us}, // the first two are awake when the others send
	} {
		plans, inPlace := Plans(by(t, "broadcast", "binomial"), "broadcast", 2, 10_000)
		s := System{Links: Links{Network: c.link}, Processors: []int{c.processors, c.processors}, Chunk: noLimit}
		for range c.rails {
			s.Machines, s.Kernels = append(s.Machines, 0, 1), append(s.Kernels, 0, 1)
		}
		if got, ok := s.Time(OnRails(plans, c.rails), inPlace); got != c.want || !ok {
			t.Errorf("%+v: %v, want %v", c, got, c.want)
		}
	}
}
