// Command bench-launch compares gorun with the other launchers on this machine: the time from the start of the
// launcher to the first line of its workers' main, the time from a worker's death to the first line of its
// successors, and to the first right all-reduce with its survivors, the rate at which the launcher passes on its workers' output, and the launcher's memory. It prints
// medians and does not judge them.
//
//	go run ./scripts/bench-launch [-rounds N] [-lines N] [-only TEXT] [-json]
//
// Peers: Debian's python3-torch (torchrun), openmpi-bin, mpich. Those that are missing are left out. All are run in
// turn, round by round, with the same worker: this program, or one in Python.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/gorun/gorun/scripts/internal/peers"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == workerArg {
		work(os.Args[2], os.Args[3:])
		return
	}
	rounds := flag.Int("rounds", 9, "runs of each launcher and case; the median counts")
	lines := flag.Int("lines", 200_000, "lines that each of 8 workers writes in the case of output")
	only := flag.String("only", "", "the cases whose names contain this text")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	if err := run(*rounds, *lines, *only, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "bench-launch:", err)
		os.Exit(1)
	}
}

func run(rounds, lines int, only string, asJSON bool) error {
	dir, err := os.MkdirTemp("", "bench-launch-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	gorun, err := peers.Gorun(dir)
	if err != nil {
		return err
	}
	if peers.Python() != "" {
		if err := peers.Package(dir); err != nil {
			return err
		}
	}
	worker, err := os.Executable()
	if err != nil {
		return err
	}
	b := bench{dir: dir, worker: worker, rounds: rounds, lines: lines, launchers: launchers(gorun, dir)}
	var all []figure
	for _, c := range cases {
		if !strings.Contains(c.name, only) {
			continue
		}
		figures, err := b.run(c)
		if err != nil {
			return err
		}
		all = append(all, figures...)
		if !asJSON {
			print(c, figures)
		}
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	return nil
}

// print shows one case, and how the others compare with the first launcher, gorun.
func print(c benchCase, figures []figure) {
	fmt.Printf("%s (%s, median of %d)\n", c.name, c.unit, figures[0].Runs)
	for _, f := range figures {
		ratio := ""
		if f.Launcher != figures[0].Launcher && figures[0].Median > 0 {
			ratio = fmt.Sprintf("  %.1f of gorun's", f.Median/figures[0].Median)
		}
		fmt.Printf("  %-16s %10.1f  (%.1f to %.1f)%s%s\n", f.Launcher, f.Median, f.Min, f.Max, ratio, note(f))
	}
	fmt.Println(strings.Repeat("-", 72))
}

func note(f figure) string {
	text := ""
	if f.Lost > 0 {
		text += fmt.Sprintf("  %d lines lost or torn", f.Lost)
	}
	if f.Hung > 0 {
		text += fmt.Sprintf("  hung %d times", f.Hung)
	}
	return text
}
