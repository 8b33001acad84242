package job

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/gorun/gorun/agent"
)

// TestInterruptible: who waits for a file system that does not answer hears an interrupt.
func TestInterruptible(t *testing.T) {
	interrupts, answers := make(chan os.Signal, 1), make(chan struct{})
	defer close(answers)
	if n, err := interruptible(interrupts, func() (int, error) { return 7, nil }); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	interrupts <- syscall.SIGTERM
	n, err := interruptible(interrupts, func() (int, error) { <-answers; return 7, nil })
	if stopped, ok := errors.AsType[*agent.InterruptError](err); n != 0 || !ok || stopped.Signal != syscall.SIGTERM {
		t.Errorf("%d, %v", n, err)
	}
}
