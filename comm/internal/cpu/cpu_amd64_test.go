//go:build !schedule

package cpu

import "testing"

func TestCopyWithoutStrings(t *testing.T) {
	defer func(was bool) { movesStrings = was }(movesStrings)
	movesStrings = false
	TestCopy(t)
}
