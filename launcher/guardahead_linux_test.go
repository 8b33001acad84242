package launcher

import (
	"testing"
)

func TestGuardStartedAhead(t *testing.T) {
	guard, err := StartGuard(100)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := spec(t, 2, "exit", "0")
	s.Guard = guard
	for attempt := range 2 { // the second start finds it taken
		g := start(t, s)
		if (g.guard == guard) != (attempt == 0) {
			t.Errorf("attempt %d: guard %d, started ahead %d", attempt, g.guard.pid, guard.pid)
		}
		exits(t, g)
	}
	guard.Close() // ended long ago
	if list := children(t); len(list) > 0 {
		t.Errorf("children left: %+v", list)
	}
}

func TestGuardThatIsNotNeeded(t *testing.T) {
	for range 20 { // also before its main has begun
		guard, err := StartGuard(100)
		if err != nil {
			t.Fatal(err)
		}
		guard.Close()
		guard.Close()
	}
	if list := children(t); len(list) > 0 {
		t.Errorf("children left: %+v", list)
	}
}
