package jobs

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
)

const (
	watchInterval = time.Second

	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate one, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearRest   = "\x1b[J"
	clearLine   = "\x1b[K"
)

// Watch shows a job in a terminal, and again every second, until ctx ends, somebody presses q or ^C, or the job has ended. The error is
// that of the first look.
func Watch(ctx context.Context, stdin, stdout *os.File, look func(context.Context) (*status.Job, error)) error {
	job, err := look(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if before, err := term.MakeRaw(int(stdin.Fd())); err == nil { // or nobody can press a key
		defer func() { _ = term.Restore(int(stdin.Fd()), before) }()
		go awaitKey(stdin, cancel)
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	again := time.NewTicker(watchInterval)
	defer again.Stop()
	_, _ = stdout.WriteString(enterScreen) // if the terminal is gone, so is the user
	last := ""
	defer func() { _, _ = stdout.WriteString(leaveScreen + last) }()
	for {
		width, height, err := term.GetSize(int(stdout.Fd()))
		if err != nil {
			width, height = 80, 24
		}
		if _, err := stdout.WriteString(Screen(Show(job, time.Now()), width, height)); err != nil {
			return nil // nobody looks any more
		}
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
			continue
		case <-again.C:
		}
		now, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			last = agent.Printable(fmt.Sprintf("job %s is gone: %v", job.ID, err)) + "\r\n"
			return nil
		}
		job = now
	}
}

// awaitKey calls quit when somebody presses q or ^C, or the terminal is gone.
func awaitKey(stdin *os.File, quit func()) {
	defer quit()
	for key := make([]byte, 1); ; {
		if _, err := stdin.Read(key); err != nil || strings.ContainsRune("qQ\x03", rune(key[0])) {
			return
		}
	}
}

// Screen returns what shows a text on a terminal of this size in place of what stood there. It cuts what has no room.
func Screen(text string, width, height int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if more := len(lines) - height; more > 0 && height > 0 {
		lines = append(lines[:height-1], fmt.Sprintf("(%d more lines)", more+1))
	}
	var b strings.Builder
	b.WriteString(home)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if utf8.RuneCountInString(line) > width {
			line = string([]rune(line)[:max(width, 0)])
		}
		b.WriteString(line + clearLine)
	}
	b.WriteString(clearRest)
	return b.String()
}
