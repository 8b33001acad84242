package cost

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Link says what messages between two ranks cost. A message of n bytes that nothing holds up takes Latency + 2 Overhead, and n times Gap
// or Copy, whichever is longer.
type Link struct {
	Latency  time.Duration // L: from the moment when a byte leaves a machine until it arrives
	Overhead time.Duration // o: of a processor for a message, at each end
	Wakeup   time.Duration // of a receiver that sleeps, because its machine has fewer processors than ranks
	Gap      int           // G: of the wire for a byte, in picoseconds
	Copy     int           // O: of a processor for a byte, at each end, in picoseconds
}

// Links are the constants of a prediction.
type Links struct {
	Network Link // between machines
	Machine Link // inside a machine, over TCP
	Combine int  // of a processor for a byte that it copies or combines with another one, in picoseconds
}

// Default returns the constants for those that the user has not set.
//
// Those of Machine come from "gorun bench sendrecv --transport=tcp" on two cores of a virtual machine with an AVX-512 Xeon: 2 ranks
// exchange 8 bytes in 8 microseconds, and 2 MiB in 0.45 milliseconds, of which each spends half on its own bytes; 4 ranks, which sleep,
// exchange 8 bytes in 26 microseconds. Those of Network are not measured: they are usual in data centres.
func Default() Links {
	return Links{
		Network: Link{Latency: 20 * time.Microsecond, Overhead: 4 * time.Microsecond, Wakeup: 5 * time.Microsecond, Gap: gap(10e9), Copy: 100},
		Machine: Link{Overhead: 4 * time.Microsecond, Wakeup: 5 * time.Microsecond, Copy: 100},
		Combine: 50,
	}
}

// String returns l as [Parse] reads it.
func (l Link) String() string {
	text := fmt.Sprintf("latency:%s,overhead:%s,wakeup:%s", short(l.Latency), short(l.Overhead), short(l.Wakeup))
	if l.Gap > 0 {
		text += ",rate:" + Rate(l.Gap)
	}
	if l.Copy > 0 {
		text += ",copy:" + Rate(l.Copy)
	}
	return text
}

// short is d in ASCII.
func short(d time.Duration) string { return strings.Replace(d.String(), "µ", "u", 1) }

// Rate returns the rate of a gap, as [Parse] reads it.
func Rate(gap int) string { return strconv.FormatFloat(8e3/float64(gap), 'f', -1, 64) + "Gbit" }

// The limits of what a user may set keep sums of times in range.
const (
	longestDelay     = time.Second
	slowest, fastest = 1e6, 10e12 // rates, in bits per second
)

// gap returns the picoseconds for a byte at so many bits per second.
func gap(rate float64) int { return max(int(8e12/rate), 1) }

// Parse reads links from text, and takes those that are missing from [Default]:
//
//	network=latency:20us,rate:10Gbit; machine=overhead:4us
//
// Latency, overhead and wakeup are durations of at most a second. Rate and copy are bits per second, from 1Mbit to 10000Gbit.
func Parse(text string) (Links, error) { return Default().With(text) }

// With returns l with those that text sets: see [Parse].
func (l Links) With(text string) (Links, error) {
	for item := range strings.SplitSeq(text, ";") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if err := l.set(item); err != nil {
			return Links{}, fmt.Errorf("link %q: %w", item, err)
		}
	}
	return l, nil
}

func (l *Links) set(rule string) error {
	name, settings, found := strings.Cut(rule, "=")
	if !found {
		return fmt.Errorf("want network=latency:20us,rate:10Gbit or the like")
	}
	var link *Link
	switch strings.TrimSpace(name) {
	case "network":
		link = &l.Network
	case "machine":
		link = &l.Machine
	default:
		return fmt.Errorf("there is no link %q: want network or machine", name)
	}
	for setting := range strings.SplitSeq(settings, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(setting), ":")
		if err := link.set(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (l *Link) set(key, value string) (err error) {
	switch key {
	case "latency":
		l.Latency, err = parseDelay(value)
	case "overhead":
		l.Overhead, err = parseDelay(value)
	case "wakeup":
		l.Wakeup, err = parseDelay(value)
	case "rate":
		l.Gap, err = parseRate(value)
	case "copy":
		l.Copy, err = parseRate(value)
	default:
		err = fmt.Errorf("there is no %q: want latency, overhead, wakeup, rate or copy", key)
	}
	return err
}

func parseDelay(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longestDelay {
		return 0, fmt.Errorf("%q: want a duration of at most a second, as 20us or 0.5ms", text)
	}
	return d, nil
}

// parseRate returns the gap of a rate.
func parseRate(text string) (int, error) {
	for unit, bits := range map[string]float64{"Gbit": 1e9, "Mbit": 1e6} {
		if number, found := strings.CutSuffix(text, unit); found {
			n, err := strconv.ParseFloat(number, 64)
			if rate := n * bits; err == nil && rate >= slowest && rate <= fastest {
				return gap(rate), nil
			}
		}
	}
	return 0, fmt.Errorf("%q: want a rate from 1Mbit to 10000Gbit", text)
}
