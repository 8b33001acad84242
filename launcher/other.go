//go:build !linux

package launcher

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// What a guard needs (subreapers, parent-death signals, /proc) is Linux's own.
var errOS = errors.New("workers run on Linux only: on this system gorun can be built but not used to start them")

// IsGuard is false: there are no guards on this system.
func IsGuard() bool { return false }

// RunGuard does nothing on this system.
func RunGuard() int { return 1 }

// Start fails on this system.
func Start(context.Context, Spec) (*Gang, error) { return nil, errOS }

// ReservePort fails on this system.
func ReservePort(string, int) (*Port, error) { return nil, errOS }

// ReapAsInit does nothing on this system.
func ReapAsInit() (stop func()) { return func() {} }

// A Guard is not to be had on this system.
type Guard struct{}

// StartGuard fails on this system.
func StartGuard(int) (*Guard, error) { return nil, errOS }

// Close does nothing on this system.
func (g *Guard) Close() {}

func (g *Guard) end() []int { return nil }

func (g *Gang) release() {}

func unread(*os.File) (int, error) { return 0, errOS }

func dieWithUs(syscall.Signal) *syscall.SysProcAttr { return nil }
