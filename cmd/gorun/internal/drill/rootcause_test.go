package drill

import (
	"fmt"
	"testing"
)

func TestRootCauses(t *testing.T) {
	const (
		one   = "08:14:56 [WARN]  gorun: [default] Worker group FAILED. 3/3 attempts left; will restart worker group: rank 1 on vm: signal 9 (SIGKILL); restart 1 of 3\n"
		other = "08:14:57 [WARN]  gorun: [default] Worker group FAILED. 3/3 attempts left; will replace those that have ended: rank 0 on vm: exit code 1; restart 1 of 3\n"
		two   = "[WARN]  gorun: [default] Worker group FAILED. 2/3 attempts left; will restart worker group: rank 1 on vm: signal 9 (SIGKILL); restart 2 of 3\n"
	)
	for want, c := range map[string]struct {
		logs     []string
		restarts int
	}{
		"<nil>":                               {[]string{"hello\n" + one + two, one, two}, 2},
		"no node says why restart 2 was used": {[]string{one}, 2},
		"restart 1 is said to be because of rank 0 on vm: exit code 1, which the fault did not hit": {[]string{other, other}, 1},
	} {
		w := newTale(1)
		k := w.gang(1, 0, 0, 2)[0]
		k.Rank = 1
		w.inject(w.now, func(other *worker) bool { return other == k })
		w.exitCode = -9
		logs := make(map[string][]byte)
		for i, log := range c.logs {
			logs[fmt.Sprint("node", i)] = []byte(log)
		}
		if got := fmt.Sprint(w.checkRootCauses(logs, c.restarts)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	w := newTale(1)
	if err := w.checkRootCauses(map[string][]byte{"a": []byte(one), "b": []byte(other)}, 1); err == nil {
		t.Error("two nodes may say different things")
	}
}
