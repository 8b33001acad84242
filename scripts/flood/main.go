//go:build linux

// Flood attacks a job, or any process with its descendants: strangers connect to every port where they listen, and to ports that are
// opened later, prove nothing, and come back when they are dropped.
//
//	go run ./scripts/flood -n 10000 PID
package main

import "github.com/gorun/gorun/scripts/flood/attack"

func main() { attack.Main() }
