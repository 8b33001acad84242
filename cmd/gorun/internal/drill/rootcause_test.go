package drill

import (
	"fmt"
	"strings"
	"testing"
)

func TestRootCauses(t *testing.T) {
	const (
		one   = "08:14:56 [WARN]  gorun: [default] Worker group FAILED. 3/3 attempts left; will restart worker group: rank 1 on vm: signal 9 (SIGKILL); restart 1 of 3\n"
		other = "08:14:57 [WARN]  gorun: [default] Worker group FAILED. 3/3 attempts left; will replace those that have ended: rank 0 on vm: exit code 1; restart 1 of 3\n"
		two   = "08:15:00 [WARN]  gorun: [default] Worker group FAILED. 2/3 attempts left; will restart worker group: rank 1 on vm: signal 9 (SIGKILL); restart 2 of 3\n"
	)
	for want, c := range map[string]struct {
		logs     []string
		restarts int
	}{
		"<nil>":                               {[]string{one + two, one, two}, 2},
		"no node says why restart 2 was used": {[]string{one}, 2},
		"restart 1 is said to be because of rank 0 on vm: exit code 1, which the fault did not hit": {[]string{other, other}, 1},
	} {
		w := newTale(1)
		k := w.gang(1, 0, 0, 2)[0]
		k.Rank = 1
		w.inject(w.now, fault{hits: func(other *worker) bool { return other == k }, exitCode: -9})
		for i, log := range c.logs {
			w.explainAll(t, fmt.Sprint("node", i), log)
		}
		if got := fmt.Sprint(w.checkRootCauses(c.restarts, false)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	w := newTale(1)
	w.explainAll(t, "a", one)
	w.explainAll(t, "b", other)
	if w.wrong == nil {
		t.Error("two nodes may say different things")
	}
}

// explainAll records what the lines of a log say.
func (w *tale) explainAll(t *testing.T, agent, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		c, ok := rootCauseIn([]byte(line))
		if !ok {
			t.Errorf("no root cause in %q", line)
		}
		w.explain(agent, c)
	}
}
