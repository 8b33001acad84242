package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/launcher"
)

// Limits, so that a typing error does not exhaust the machine.
const (
	maxNodes    = 1 << 16
	maxProcs    = 1 << 16
	maxRestarts = 1 << 30
	maxPort     = 65535
	maxSeconds  = 1e6
)

// The values that have names.
var (
	startMethods = []string{"spawn", "fork", "forkserver"}
	stdChoices   = []string{"0", "1", "2", "3"}
	logsSpecs    = []string{"default"}
)

// into returns what sets a field of the flags to what parse makes of a text.
func into[T any](at func(*flags) *T, parse func(string) (T, error)) func(*flags, string) error {
	return func(o *flags, s string) (err error) {
		*at(o), err = parse(s)
		return err
	}
}

// nowhere is the field of a flag without effect.
func nowhere(*flags) *string { return new(string) }

func anyText(s string) (string, error) { return s, nil }

// parseSwitch accepts numbers, as torchrun does, and words such as true.
func parseSwitch(s string) (bool, error) {
	if n, err := strconv.Atoi(s); err == nil {
		return n != 0, nil
	}
	on, err := strconv.ParseBool(s)
	if err != nil {
		return false, errors.New("want 1 or 0")
	}
	return on, nil
}

func choice(choices []string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !slices.Contains(choices, s) {
			return "", fmt.Errorf("want %s%s", anyOf(choices), didYouMean(s, choices))
		}
		return s, nil
	}
}

// anyOf returns "a, b or c".
func anyOf(choices []string) string {
	last := len(choices) - 1
	if last == 0 {
		return choices[0]
	}
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// shortestHang is the least --hang-timeout: package comm reports progress four times a second.
const shortestHang = time.Second

func hangTimeout(s string) (time.Duration, error) {
	d, err := toSeconds(s)
	if err == nil && d > 0 && d < shortestHang {
		err = errors.New("want 0, or a number of seconds of at least 1")
	}
	return d, err
}

func interval(s string) (string, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err != nil || !(seconds > 0) {
		return "", errors.New("want a positive number of seconds")
	}
	return s, nil
}

// parseStd removes the value from the error, because the caller adds it.
func parseStd(s string) (launcher.StdMap, error) {
	m, err := launcher.ParseStd(s)
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), strconv.Quote(s)+": "))
	}
	return m, err
}

func localRanks(s string) (map[int]bool, error) {
	ranks := make(map[int]bool)
	for item := range strings.SplitSeq(s, ",") {
		rank, err := number(item, 0, maxProcs-1)
		if err != nil {
			return nil, errors.New("want local ranks separated by commas, such as 0,3")
		}
		ranks[rank] = true
	}
	return ranks, nil
}

// filters splits at commas. As in torchrun, two commas stand for a comma in a text.
func filters(s string) (texts []string, err error) {
	const comma = "\x00"
	if strings.Contains(s, comma) {
		return nil, errors.New("want texts separated by commas")
	}
	for item := range strings.SplitSeq(strings.ReplaceAll(s, ",,", comma), ",") {
		if item != "" {
			texts = append(texts, strings.ReplaceAll(item, comma, ","))
		}
	}
	return texts, nil
}

// sizes are the units that may follow a number.
var sizes = map[string]int64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

func size(s string) (int64, error) {
	text := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I")
	digits := strings.TrimRight(text, "KMGT")
	unit, known := sizes[text[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n < 1 || n > math.MaxInt64/unit {
		return 0, errors.New("want a size in bytes, such as 4096, 100M or 2G")
	}
	return n * unit, nil
}

func text(want string) func(string) (string, error) {
	return func(s string) (string, error) {
		if strings.TrimSpace(s) == "" || strings.ContainsFunc(s, unicode.IsControl) {
			return "", errors.New("want " + want)
		}
		return s, nil
	}
}

// maxName is how many bytes the name of a job or a role may have. Names are in keys of etcd, and in what nodes say of a job.
const maxName = 1024

func words(want string) func(string) ([]string, error) {
	return func(s string) ([]string, error) {
		list := strings.Split(s, ",")
		if slices.ContainsFunc(list, func(w string) bool { return strings.TrimSpace(w) != w || w == "" }) {
			return nil, fmt.Errorf("%s is wanted, or several with commas between them", want)
		}
		return list, nil
	}
}

func jobName(s string) (string, error) {
	if len(s) > maxName {
		return "", fmt.Errorf("want a name of at most %d bytes: this one has %d", maxName, len(s))
	}
	return text(fmt.Sprintf("a name of at most %d bytes", maxName))(s)
}

// orEmpty treats an empty value as if the flag were not given, because scripts for torchrun pass variables that may
// be empty.
func orEmpty(set func(*flags, string) error) func(*flags, string) error {
	return func(o *flags, s string) error {
		if s == "" {
			return nil
		}
		return set(o, s)
	}
}

// number allows blanks around the digits, as Python does.
func number(s string, low, high int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("want a number from %d to %d", low, high)
	}
	return n, nil
}

func between(low, high int) func(string) (int, error) {
	return func(s string) (int, error) { return number(s, low, high) }
}

// quote returns a value on one line, in quotes only if necessary.
func quote(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r == ' ' || !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// signalChoices are the signals that users may want to end a job with. Other signals that can be caught are accepted too.
var signalChoices = []string{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGXCPU"}

// stopSignals reads SIGTERM,SIGINT; the SIG may be left out.
func stopSignals(s string) (list []os.Signal, err error) {
	for item := range strings.SplitSeq(s, ",") {
		name := strings.ToUpper(strings.TrimSpace(item))
		if !strings.HasPrefix(name, "SIG") {
			name = "SIG" + name
		}
		sig := unix.SignalNum(name)
		switch sig {
		case 0:
			return nil, fmt.Errorf("no signal %s%s: want names separated by commas, such as SIGTERM,SIGUSR1", quote(item), didYouMean(name, signalChoices))
		case syscall.SIGKILL, syscall.SIGSTOP:
			return nil, fmt.Errorf("no program can handle %s", name)
		case syscall.SIGCHLD:
			return nil, fmt.Errorf("gorun gets %s whenever a worker ends", name)
		default:
			if !slices.Contains(list, os.Signal(sig)) {
				list = append(list, sig)
			}
		}
	}
	return list, nil
}
