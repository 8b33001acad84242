//go:build !linux

package guard

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// A Guard does not exist on this system: what it needs (subreapers, parent-death signals, /proc) exists only on Linux.
type Guard struct{}

// Start fails on this system.
func Start(int) (*Guard, error) {
	return nil, fmt.Errorf("cannot start the guard of the workers: %w", errors.ErrUnsupported)
}

// Keep fails on this system.
func Keep(string) (*Guard, error) { return nil, errors.ErrUnsupported }

// Keep does nothing on this system.
func (g *Guard) Keep(string) {}

// Next fails on this system.
func (g *Guard) Next() (Event, error) { return Event{}, errors.ErrUnsupported }

// Stop does nothing on this system.
func (g *Guard) Stop([]int, syscall.Signal, time.Duration, bool) {}

// Kill does nothing on this system.
func (g *Guard) Kill([]int) {}

// Finish does nothing on this system.
func (g *Guard) Finish() {}

// Stderr is empty on this system.
func (g *Guard) Stderr() string { return "" }

// Pid is 0 on this system.
func (g *Guard) Pid() int { return 0 }

// Signal does nothing on this system.
func (g *Guard) Signal(syscall.Signal) {}

// Suspend does nothing on this system.
func (g *Guard) Suspend() {}

// Resume does nothing on this system.
func (g *Guard) Resume() {}

// Close does nothing on this system.
func (g *Guard) Close() {}

// End does nothing on this system.
func (g *Guard) End(time.Duration) (denied, stuck []int) { return nil, nil }

// AnswerBy does nothing on this system.
func (g *Guard) AnswerBy(time.Time) {}

// ReapAsInit does nothing on this system.
func ReapAsInit() (stop func()) { return func() {} }
