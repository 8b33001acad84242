//go:build !linux

package hang

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// Workers run on Linux only.

func threadsOf(Worker) (text, doing string) { return "", "" }

func programPid(w Worker) int { return w.Pid }

func activityOf(context.Context, Worker, time.Duration) activity { return waits }

func anyTraced([]Worker) bool { return false }

func isSuspended(int) bool { return false }

func handles(int, syscall.Signal) bool { return false }

func dumped(context.Context, Worker) (string, error) { return "", nil }

type program int

const (
	programOther program = iota
	programPython
	programGo
)

func programOf(int) program { return programOther }

var errNoPySpy = errors.New("there is no py-spy")

func pySpy(context.Context, int) (string, error) { return "", errNoPySpy }

// AwaitEnd waits for the end of a process, until the timeout.
func AwaitEnd(context.Context, int, time.Duration) {}
