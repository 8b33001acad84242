//go:build linux

// Flood holds a job, or whatever a process and its descendants are, under attack: at every port where they listen, and at those that
// come, strangers connect, prove nothing, and come back when they are dropped.
//
//	go run ./scripts/flood -n 10000 PID
package main

import "github.com/gorun/gorun/scripts/flood/attack"

func main() { attack.Main() }
