package agent

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

var errSick = errors.New("it is sick")

// addCheck gives a node a check that fails the given number of times, and records each time.
func (s *testbed) addCheck(failures int) {
	s.config.Cooldown, s.config.Lease = 30*time.Second, 10*time.Second
	s.config.Health = func(context.Context) error {
		s.record("check")
		if failures--; failures >= 0 {
			return errSick
		}
		return nil
	}
}

// TestHealthBeforeJoining: a node joins when its check passes, and checks itself again if one of its own workers has failed.
func TestHealthBeforeJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbeds(t, 1,
			[][]script{{{obeys: 143}}, {{after: time.Second}}},
			[][]script{{{after: time.Minute, code: 3}}, {{after: time.Second}}})
		s[0].addCheck(0)
		s[1].addCheck(2)
		for i, err := range runAll(t, s) {
			if err != nil {
				t.Errorf("node %d: %v", i, err)
			}
		}
		const again = "2m30s [WARN]  [default] Worker group FAILED. 1/1 attempts left; will restart worker group: rank 1 on b: exit code 3; restart 1 of 1"
		s[0].wantStory("0s check", "1m30s start", "2m30s stop terminated", again, "2m30s start")
		s[1].wantStory(
			"0s check", "0s [WARN]  this node does not join: it is sick; it tries again in 30s, and gives up after 10m0s",
			"30s check", "30s [WARN]  this node does not join: it is sick; it tries again in 1m0s, and gives up after 9m30s",
			"1m30s check", "1m30s start", "2m30s stop terminated",
			"2m30s [ERROR] failed (exitcode: 3) local_rank: 0 (pid: 101) of binary: prog: rank=1 host=b", "2m30s check", again, "2m30s start")
	})
}

// TestHealthNeverGood: a node gives up after ReportTimeout, or at once if no other node can take its place.
func TestHealthNeverGood(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{0: 0, time.Second: 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := newTestbed(t, 1, []script{{}})
			s.addCheck(1 << 30)
			s.config.Lease = lease
			err := Run(t.Context(), s.config)
			if !errors.Is(err, errSick) || time.Since(s.start) != want {
				t.Errorf("lease %v: after %v: %v", lease, time.Since(s.start), err)
			}
			if strings.Contains(strings.Join(s.story, " "), "start") {
				t.Errorf("lease %v: workers were started", lease)
			}
		})
	}
}

// TestHealthInterrupted: an interrupt ends the wait for better health.
func TestHealthInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestbed(t, 1, []script{{}})
		s.addCheck(1 << 30)
		after(time.Minute, s.interrupts, syscall.SIGTERM)
		err := Run(t.Context(), s.config)
		if stopped, ok := errors.AsType[*InterruptError](err); !ok || stopped.Signal != syscall.SIGTERM || time.Since(s.start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(s.start), err)
		}
	})
}
