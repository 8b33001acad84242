//go:build !linux

package affinity

func bind(_, _ []int) error { return nil }

func calls(_, _ []int) func() func() { return nil }
