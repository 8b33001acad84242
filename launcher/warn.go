package launcher

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gorun/gorun/launcher/guard"
)

// This file is about processes that do not end as they should.

// endGuard ends a guard that has died, or does not answer, and its workers.
func (g *Gang) endGuard(its *guard.Guard) {
	denied, stuck := its.End(g.spec.killTimeout())
	g.warnDenied(denied)
	g.warnStuck(stuck)
}

func (g *Gang) warnStuck(pids []int) {
	if len(pids) == 0 {
		return
	}
	names := make([]string, len(pids))
	for i, pid := range pids {
		names[i] = strconv.Itoa(pid)
		for _, w := range g.present() {
			if int(w.pid.Load()) == pid {
				names[i] += fmt.Sprintf(" (rank %d)", w.rank.Load())
			}
		}
	}
	g.spec.warn("SIGKILL did not end process %s within %v: it is frozen, or blocked in the kernel by a device or file system that does not answer; "+
		"gorun ends without it", strings.Join(names, ", "), g.spec.killTimeout())
}

// warnLeft says of which ranks processes were killed that outlived them: n is guard.Event.Left.
func (g *Gang) warnLeft(n map[int]int) {
	var parts []string
	for _, index := range slices.Sorted(maps.Keys(n)) {
		of := "a rank that is not known"
		if index >= 0 {
			of = fmt.Sprintf("rank %d", g.workers[index].Load().rank.Load())
		}
		parts = append(parts, fmt.Sprintf("%d of %s", n[index], of))
	}
	g.spec.warn("processes that outlived their workers were killed: %s", strings.Join(parts, ", "))
}

func (g *Gang) warnDenied(pids []int) {
	if len(pids) > 0 {
		slices.Sort(pids)
		g.spec.warn("processes %v still run: the workers started them as another user, and only that user can end them", pids)
	}
}
