package guard

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const (
	term = syscall.SIGTERM
	usr1 = syscall.SIGUSR1
)

// TestStepSignals: signals come to the guard at some times, and at others the agent passes one on, or a worker ends.
func TestStepSignals(t *testing.T) {
	type arrival struct {
		at  time.Duration
		sig syscall.Signal
	}
	type pass struct {
		at      time.Duration
		sig     syscall.Signal
		reached bool
		takes   time.Duration
	}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		arrive []arrival
		passes []pass
	}{
		"before":                {[]arrival{{0, term}}, []pass{{20 * ms, term, true, 0}}},
		"a moment later":        {[]arrival{{60 * ms, term}}, []pass{{20 * ms, term, true, 40 * ms}}},
		"not at all":            {nil, []pass{{0, term, false, stepDelay}}},
		"another one":           {[]arrival{{0, usr1}}, []pass{{20 * ms, term, false, stepDelay}}},
		"one is not two":        {[]arrival{{0, usr1}}, []pass{{10 * ms, usr1, true, 0}, {20 * ms, usr1, false, stepDelay}}},
		"two are two":           {[]arrival{{0, usr1}, {5 * ms, usr1}}, []pass{{10 * ms, usr1, true, 0}, {20 * ms, usr1, true, 0}}},
		"slurmctld is slow":     {[]arrival{{0, term}}, []pass{{passDelay - ms, term, true, 0}}},
		"long before":           {[]arrival{{0, usr1}}, []pass{{passDelay + 10*ms, usr1, false, stepDelay}}},
		"mixed, and much later": {[]arrival{{0, usr1}, {9 * time.Second, usr1}}, []pass{{10 * time.Second, usr1, true, 0}, {11 * time.Second, usr1, false, stepDelay}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				arrived, begun := make(chan os.Signal, 8), time.Now()
				s := stepSignals{ending: []syscall.Signal{term}, arrived: arrived, at: map[syscall.Signal][]time.Time{}}
				go func() {
					for _, a := range c.arrive {
						time.Sleep(a.at - time.Since(begun))
						arrived <- a.sig
					}
				}()
				for _, p := range c.passes {
					for time.Since(begun) < p.at { // as the guard's loop does whenever something happens
						time.Sleep(min(ms, p.at-time.Since(begun)))
						s.await(0, 0)
					}
					if got := s.reached(p.sig); got != p.reached || time.Since(begun)-p.at != p.takes {
						t.Errorf("%v at %v: %v after %v", p.sig, p.at, got, time.Since(begun)-p.at)
					}
				}
			})
		})
	}
}

func TestEndedByStepSignal(t *testing.T) {
	killed := func(sig syscall.Signal) syscall.WaitStatus { return syscall.WaitStatus(sig) }
	exit := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	for name, c := range map[string]struct {
		first, later syscall.Signal // that comes before the worker ends, and 50 ms after that; 0: none
		status       syscall.WaitStatus
		want         syscall.Signal
		takes        time.Duration
	}{
		"killed by it":             {term, 0, killed(term), term, 0},
		"killed before the guard":  {0, term, killed(term), term, 50 * time.Millisecond},
		"killed by somebody":       {0, 0, killed(term), 0, stepDelay},
		"exits because of it":      {term, 0, exit(1), term, 0},
		"exits by itself":          {0, 0, exit(1), 0, 0},
		"crashes":                  {0, term, killed(syscall.SIGSEGV), 0, 0},
		"another signal, no end":   {usr1, 0, exit(1), 0, 0},
		"killed by one that is no": {usr1, 0, killed(usr1), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				arrived := make(chan os.Signal, 8)
				s := stepSignals{ending: []syscall.Signal{term}, arrived: arrived, at: map[syscall.Signal][]time.Time{}}
				if c.first != 0 {
					arrived <- c.first
				}
				if c.later != 0 {
					time.AfterFunc(50*time.Millisecond, func() { arrived <- c.later })
				}
				begun := time.Now()
				if got := s.endedBy(c.status); got != c.want || time.Since(begun) != c.takes {
					t.Errorf("%v after %v, want %v after %v", got, time.Since(begun), c.want, c.takes)
				}
				time.Sleep(stepDelay)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // many that somebody kills do not make the guard wait for each
		s := stepSignals{ending: []syscall.Signal{term}, arrived: make(chan os.Signal), at: map[syscall.Signal][]time.Time{}}
		begun := time.Now()
		for range 64 {
			if s.endedBy(killed(term)) != 0 {
				t.Error("nobody has signalled the guard")
			}
		}
		if took := time.Since(begun); took != stepDelay {
			t.Errorf("it took %v", took)
		}
	})
	s := stepSignals{arrived: make(chan os.Signal)} // not a step
	if s.endedBy(killed(term)) != 0 || s.reached(term) {
		t.Error("outside a step")
	}
}
