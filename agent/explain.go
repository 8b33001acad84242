package agent

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/gorun/gorun/env/death"
)

// exitText adds the signal's name: "3", "-11 (SIGSEGV)".
func exitText(x death.Death) string {
	if sig := x.Signal(); sig != 0 {
		return "-" + death.SignalNumber(sig)
	}
	return strconv.Itoa(x.ExitCode)
}

// explanation says why a worker failed, from its error file or else from its stderr. It has at least one line,
// and only the last lines of each text.
func (e *WorkerError) explanation(x death.Death, lines int) []string {
	if e.Elsewhere != nil && x.Rank == e.Root.Rank {
		return lastLines(e.Elsewhere.Text, lines)
	}
	r := e.ErrorFiles[x.Rank]
	if x.Stopped && x.Rank != e.Root.Rank {
		out := []string{fmt.Sprintf("%s: stopped by gorun after rank %d failed", ending(x), e.Root.Rank)}
		if r.Message != "" { // it may have been about to fail on its own
			out = append(out, lastLines(r.Message, lines)...)
		}
		return out
	}
	var out []string
	if x.Signal() != 0 {
		out = append(out, ending(x))
	}
	if r.Problem != "" {
		out = append(out, "unreadable error file: "+r.Problem)
	}
	if r.Message != "" && !strings.Contains(r.Callstack, r.Message) {
		out = append(out, lastLines(r.Message, lines)...)
	}
	switch {
	case r.Callstack != "":
		out = append(out, lastLines(r.Callstack, lines)...)
	case len(x.Stderr) > 0:
		out = append(out, "last lines on stderr:")
		out = append(out, lastLines(strings.Join(x.Stderr, "\n"), min(lines, shownLines))...)
	case len(out) == 0:
		out = append(out, "no error file and nothing on stderr")
	}
	return out
}

// ending says how a worker ended, as the beginning of a sentence.
func ending(x death.Death) string {
	if sig := x.Signal(); sig != 0 && x.Cause != death.GuardLost {
		return fmt.Sprintf("Signal %s received by PID %d", death.SignalNumber(sig), x.Pid)
	}
	return x.String()
}

// lastLines returns the last n lines of a text, after a line that counts those left out.
func lastLines(text string, n int) []string {
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	var out []string
	if more := len(lines) - n; more > 0 {
		lines, out = lines[more:], []string{fmt.Sprintf("(%s before these)", plural(more, "line", "lines"))}
	}
	for _, l := range lines {
		out = append(out, cut(strings.TrimRight(l, "\r")))
	}
	return out
}

// outOfMemoryTexts are what programs print when they have run out of memory.
var outOfMemoryTexts = []struct{ said, note string }{
	{"CUDA out of memory", "it reports that the GPU's memory ran out: a smaller batch, or fewer workers for each GPU, may help"},
	{"DefaultCPUAllocator", outOfMemory},
	{"MemoryError", outOfMemory},
	{"std::bad_alloc", outOfMemory},
	{"fatal error: runtime: out of memory", outOfMemory},
}

const outOfMemory = "it reports that memory ran out: fewer workers, or more memory for the container, may help"

// noModule is what Python says of a module that is not installed.
var noModule = regexp.MustCompile(`ModuleNotFoundError: No module named '([\w.]+)'`)

// note returns what gorun knows about the cause, in addition to what the worker said; empty: nothing.
func (e *WorkerError) note(x death.Death, r ErrorFile) string {
	switch {
	case x.Cause == death.Fault && x.Signal() == 0:
		return "it " + x.Why
	case x.Cause == death.Fault:
		return "it " + x.Why + ", so gorun killed it"
	case x.Cause == death.Revoked:
		return "it " + x.String() + ". No worker had died, as far as it knew"
	case x.Cause == death.Hang:
		return x.Why + ", so gorun killed it"
	case x.OutOfMemory && x.Signal() == syscall.SIGKILL:
		return "the kernel's out-of-memory killer ended it; fewer workers, or more memory for the container, may help"
	case x.Signal() == syscall.SIGKILL && !x.Stopped && x.Cause != death.GuardLost:
		return "gorun did not send it: the out-of-memory killer may have; see dmesg or the limits of the container"
	case x.Stopped:
		return ""
	}
	said := strings.Join(x.Stderr, "\n") + "\n" + r.Message + "\n" + r.Callstack
	for _, w := range outOfMemoryTexts {
		if strings.Contains(said, w.said) {
			return w.note
		}
	}
	if missing := noModule.FindStringSubmatch(said); missing != nil && e.Python != "" {
		return fmt.Sprintf("%s has no module %s: install it for that Python, or name another one with --python", e.Python, missing[1])
	}
	if x.OutOfMemory {
		return "the kernel's out-of-memory killer has ended a process on this node since the workers started, perhaps a child of this worker " +
			"such as a data loader; fewer processes, or more memory for the container, may help"
	}
	return ""
}

// colors are the escape sequences that change only the appearance of a text, erase what follows it, or hide the cursor.
var colors = regexp.MustCompile("\x1b\\[([0-9;:]*m|[0-2]?K|\\?25[hl])")

// Printable makes a line safe for a terminal. It removes colors, and escapes, as Go does, whatever else could
// move the cursor or change the order of characters. Tabs stay.
func Printable(line string) string {
	if strings.IndexFunc(line, unsafeRune) < 0 && utf8.ValidString(line) {
		return line
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(colors.ReplaceAllString(line, ""), "\uFFFD") {
		if unsafeRune(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unsafeRune(r rune) bool {
	return r != '\t' && unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
