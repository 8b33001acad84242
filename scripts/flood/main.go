//go:build linux

// Flood holds a job, or whatever a process and its descendants are, under attack: at every port where they listen, and at those that
// come, strangers connect, prove nothing, and come back when they are dropped.
//
//	go run ./scripts/flood -n 10000 PID
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/scripts/flood/attack"
)

func main() {
	names := slices.Sorted(maps.Keys(attack.Attacks))
	n := flag.Int("n", 10_000, "strangers at each port")
	kind := flag.String("attack", "silent", "what they do: "+strings.Join(names, ", "))
	pause := flag.Duration("pause", 0, "how long one that was dropped stays away")
	flag.Parse()
	pid, err := strconv.Atoi(flag.Arg(0))
	does, ok := attack.Attacks[*kind]
	if err != nil || !ok {
		flag.Usage()
		os.Exit(2)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	f := attack.Start(does, *pause)
	f.Job(pid, *n)
	for tell := time.NewTicker(time.Second); ; {
		select {
		case <-tell.C:
			fmt.Printf("%d are open, of %d until now\n", f.Held.Load(), f.Calls.Load())
		case <-end:
			f.Stop()
			return
		}
	}
}
