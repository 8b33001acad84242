package cli

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/network"
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

func setSwitch(at func(*flags) *bool) func(*flags, string) error {
	return func(o *flags, s string) error {
		on, err := parseSwitch(s)
		*at(o) = on
		return err
	}
}

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

func setChoice(choices []string, at func(*flags) *string) func(*flags, string) error {
	return func(o *flags, s string) (err error) {
		*at(o), err = choice(choices)(s)
		return err
	}
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

// setSeconds accepts whole numbers and fractions.
func setSeconds(at func(*flags) *time.Duration) func(*flags, string) error {
	return func(o *flags, s string) (err error) {
		*at(o), err = toSeconds(s)
		return err
	}
}

// shortestHang is the least --hang-timeout: package comm reports progress four times a second.
const shortestHang = time.Second

func setHangTimeout(o *flags, s string) (err error) {
	if o.hangTimeout, err = toSeconds(s); err == nil && o.hangTimeout > 0 && o.hangTimeout < shortestHang {
		err = errors.New("want 0, or a number of seconds of at least 1")
	}
	return err
}

func setInterval(_ *flags, s string) error {
	if seconds, err := strconv.ParseFloat(s, 64); err != nil || !(seconds > 0) {
		return errors.New("want a positive number of seconds")
	}
	return nil
}

func setRedirects(o *flags, s string) (err error) { o.redirects, err = parseStd(s); return err }
func setTee(o *flags, s string) (err error)       { o.tee, err = parseStd(s); return err }

// parseStd removes the value from the error, because the caller adds it.
func parseStd(s string) (launcher.StdMap, error) {
	m, err := launcher.ParseStd(s)
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), strconv.Quote(s)+": "))
	}
	return m, err
}

func setLocalRanks(o *flags, s string) error {
	o.show = make(map[int]bool)
	for item := range strings.SplitSeq(s, ",") {
		rank, err := number(item, 0, maxProcs-1)
		if err != nil {
			return errors.New("want local ranks separated by commas, such as 0,3")
		}
		o.show[rank] = true
	}
	return nil
}

// setFilters splits at commas. As in torchrun, two commas stand for a comma in a text.
func setFilters(at func(*flags) *[]string) func(*flags, string) error {
	return func(o *flags, s string) error {
		const comma = "\x00"
		if strings.Contains(s, comma) {
			return errors.New("want texts separated by commas")
		}
		*at(o) = nil
		for item := range strings.SplitSeq(strings.ReplaceAll(s, ",,", comma), ",") {
			if item != "" {
				*at(o) = append(*at(o), strings.ReplaceAll(item, comma, ","))
			}
		}
		return nil
	}
}

// sizes are the units that may follow a number.
var sizes = map[string]int64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

func setSize(at func(*flags) *int64) func(*flags, string) error {
	return func(o *flags, s string) (err error) {
		*at(o), err = size(s)
		return err
	}
}

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

func setNumber(low, high int, at func(*flags) *int) func(*flags, string) error {
	return func(o *flags, s string) (err error) {
		*at(o), err = number(s, low, high)
		return err
	}
}

func setText(want string, at func(*flags) *string) func(*flags, string) error {
	return func(o *flags, s string) error {
		if strings.TrimSpace(s) == "" || strings.ContainsFunc(s, unicode.IsControl) {
			return errors.New("want " + want)
		}
		*at(o) = s
		return nil
	}
}

// maxName is how many bytes the name of a job or a role may have. Names are in keys of etcd, and in what nodes say of a job.
const maxName = 1024

// maxHost is how many bytes the name of a host may have, in DNS and in Linux.
const maxHost = 255

func setWords(want string, at func(*flags) *[]string) func(*flags, string) error {
	return func(o *flags, s string) error {
		words := strings.Split(s, ",")
		if slices.ContainsFunc(words, func(w string) bool { return strings.TrimSpace(w) != w || w == "" }) {
			return fmt.Errorf("%s is wanted, or several with commas between them", want)
		}
		*at(o) = words
		return nil
	}
}

func setName(at func(*flags) *string) func(*flags, string) error {
	set := setText(fmt.Sprintf("a name of at most %d bytes", maxName), at)
	return func(o *flags, s string) error {
		if len(s) > maxName {
			return fmt.Errorf("want a name of at most %d bytes: this one has %d", maxName, len(s))
		}
		return set(o, s)
	}
}

// setHost accepts a host name or an IP address, which may be in brackets.
func setHost(at func(*flags) *string) func(*flags, string) error {
	return func(o *flags, s string) error {
		if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
			s = s[1 : len(s)-1]
		}
		if s == "" || len(s) > maxHost || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("[]/", r) }) {
			return errors.New("want a host name or an IP address")
		}
		if _, err := netip.ParseAddr(s); err != nil && strings.Contains(s, ":") {
			return errors.New("want a host name or an IP address, without a port")
		}
		*at(o) = s
		return nil
	}
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

// quote returns a value on one line, in quotes only if necessary.
func quote(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r == ' ' || !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// setStatusAddr accepts a host and a port. Without a host it means loopback.
func setStatusAddr(o *flags, s string) error {
	if !strings.Contains(s, ":") {
		s = ":" + s
	}
	host, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err == nil && host != "" {
		err = setHost(func(*flags) *string { return new(string) })(o, "["+host+"]")
	}
	if err != nil {
		return errors.New("want host:port, or :port for loopback")
	}
	if host == "" {
		host = network.Loopback().String()
	}
	o.statusAddr = net.JoinHostPort(host, port)
	return nil
}

// signalChoices are the signals that users may want to end a job with. Other signals that can be caught are accepted too.
var signalChoices = []string{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGXCPU"}

// setSignals reads SIGTERM,SIGINT; the SIG may be left out.
func setSignals(o *flags, s string) error {
	o.stopSignals = nil
	for item := range strings.SplitSeq(s, ",") {
		name := strings.ToUpper(strings.TrimSpace(item))
		if !strings.HasPrefix(name, "SIG") {
			name = "SIG" + name
		}
		sig := unix.SignalNum(name)
		switch sig {
		case 0:
			return fmt.Errorf("no signal %s%s: want names separated by commas, such as SIGTERM,SIGUSR1", quote(item), didYouMean(name, signalChoices))
		case syscall.SIGKILL, syscall.SIGSTOP:
			return fmt.Errorf("no program can handle %s", name)
		case syscall.SIGCHLD:
			return fmt.Errorf("gorun gets %s whenever a worker ends", name)
		default:
			if !slices.Contains(o.stopSignals, os.Signal(sig)) {
				o.stopSignals = append(o.stopSignals, sig)
			}
		}
	}
	return nil
}
