//go:build !linux

package scratch

import "golang.org/x/sys/unix"

// bootID is the same for all processes of a machine, and another one after each boot. macOS says it.
func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }
