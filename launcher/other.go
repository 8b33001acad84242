//go:build !linux

package launcher

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/gorun/gorun/launcher/guard"
)

// What a guard needs (subreapers, parent-death signals, /proc) exists only on Linux.
var errOS = errors.New("workers run on Linux only: on this system gorun can be built but not used to start them")

// Start fails on this system.
func Start(context.Context, Spec) (*Gang, error) { return nil, errOS }

// Replace fails on this system.
func (g *Gang) Replace(context.Context, Spec, []int) error { return errOS }

func (g *Gang) release(*guard.Guard, bool) {}

// Start fails on this system.
func (p *Preload) Start(*guard.Guard, []string, func(string)) error { return errOS }

func (g *Gang) resize() {}

func isNoexec(string) bool { return false }

func readNow(*os.File, []byte) int { return 0 }

func unread(*os.File) (int, error) { return 0, errOS }

func dieWithUs(syscall.Signal) *syscall.SysProcAttr { return nil }
