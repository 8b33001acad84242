package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// restartLine is what an agent logs when the job has used a restart: why, in which rank, and which restart it is.
var restartLine = regexp.MustCompile(`Worker group FAILED\..*?; will [a-z ]+: (rank ([0-9]+) on .*); restart ([0-9]+) of [0-9]+`)

// A rootCause is why the job has used a restart, as an agent says.
type rootCause struct {
	restart, rank int
	text          string
}

// rootCauses finds those in the log of an agent.
func rootCauses(log []byte) (list []rootCause) {
	for _, m := range restartLine.FindAllSubmatch(log, -1) {
		rank, _ := strconv.Atoi(string(m[2])) // digits
		restart, _ := strconv.Atoi(string(m[3]))
		list = append(list, rootCause{restart, rank, string(m[1])})
	}
	return list
}

// checkRootCauses returns an error unless the agents say the same of each of the job's restarts, and, if the fault has ended workers, name
// one of them.
func (w *world) checkRootCauses(logs map[string][]byte, restarts int) error {
	known := make(map[int]rootCause)
	for name, log := range logs {
		for _, c := range rootCauses(log) {
			if other, ok := known[c.restart]; ok && other != c {
				return fmt.Errorf("%s says that restart %d is because of %s, and another node, because of %s", name, c.restart, c.text, other.text)
			}
			known[c.restart] = c
		}
	}
	for n := 1; n <= restarts; n++ {
		c, ok := known[n]
		if !ok {
			return fmt.Errorf("no node says why restart %d was used", n)
		}
		hit := func(k *worker) bool { return k.Rank == c.rank && w.victim(k) }
		if w.exitCode != 0 && !w.program && !slices.ContainsFunc(w.in(w.before), hit) {
			return fmt.Errorf("restart %d is said to be because of %s, which the fault did not hit", n, c.text)
		}
	}
	return nil
}

// oneRootCause checks what agents have logged.
func oneRootCause() step {
	return step{"all nodes name the same root cause", func(_ context.Context, s *testbed) error {
		logs := make(map[string][]byte)
		for _, p := range s.agents {
			if p.console == nil {
				log, err := os.ReadFile(filepath.Join(s.dir, p.name+".log"))
				if err != nil {
					return err
				}
				logs[p.name] = log
			}
		}
		return s.world.checkRootCauses(logs, s.world.restarts())
	}}
}
