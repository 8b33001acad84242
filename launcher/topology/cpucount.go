package topology

import "io/fs"

// CPUCount returns how many CPUs this process can keep busy, at least 1: those that it may run on, but no more than
// the CPU time that its cgroups grant it, rounded up. root is /, for the cgroups.
func CPUCount(root fs.FS) (int, error) {
	allowed, err := Allowed()
	if err != nil {
		return 0, err
	}
	granted, err := quota(root)
	if err != nil {
		return 0, err
	}
	if granted > 0 {
		return min(granted, len(allowed)), nil
	}
	return len(allowed), nil
}
