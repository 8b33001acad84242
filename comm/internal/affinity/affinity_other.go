//go:build !linux

package affinity

func bind(_, _ []int) error { return nil }
