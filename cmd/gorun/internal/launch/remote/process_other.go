//go:build !linux

package remote

import (
	"os"
	"syscall"
)

func executable() (string, error) { return os.Executable() }

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func adopt() error { return nil }

func endLeft() {}
