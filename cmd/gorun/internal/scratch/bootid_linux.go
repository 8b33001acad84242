package scratch

import "os"

// bootID is the same for all processes of a machine, and another one after each boot.
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(text), err
}
