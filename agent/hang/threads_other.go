//go:build !linux

package hang

import (
	"context"
	"time"
)

// Workers run on Linux only.

func threadsOf(Worker) (text, doing string) { return "", "" }

func programPid(w Worker) int { return w.Pid }

func activityOf(context.Context, Worker, time.Duration) activity { return waits }

func dumped(context.Context, Worker) (string, error) { return "", nil }

func programOf(int) program { return programOther }

func pySpy(context.Context, int) (string, error) { return "", errNoPySpy }

// AwaitEnd waits for the end of a process, until the timeout.
func AwaitEnd(context.Context, int, time.Duration) {}
