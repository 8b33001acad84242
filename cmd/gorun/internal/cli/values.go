package cli

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gorun/gorun/launcher"
)

// Limits, so that a slip of the finger is an error and not an exhausted machine.
const (
	maxNodes    = 1 << 16
	maxProcs    = 1 << 16
	maxRestarts = 1 << 30
	maxPort     = 65535
)

func setNnodes(o *options, s string) error {
	low, high, isRange := strings.Cut(s, ":")
	if !isRange {
		high = low
	}
	lowest, err1 := number(low, 1, maxNodes)
	most, err2 := number(high, 1, maxNodes)
	if err := errors.Join(err1, err2); err != nil || lowest > most {
		return fmt.Errorf("want a number of nodes from 1 to %d, or MIN:MAX with MIN at most MAX", maxNodes)
	}
	if lowest != most {
		return errors.New("a range needs an elastic rendezvous backend, and static is the only one: want one number")
	}
	o.nnodes = most
	return nil
}

func setNproc(o *options, s string) (err error) {
	switch s {
	case "auto", "cpu":
		o.nproc = runtime.NumCPU() // honours the affinity of this process
	case "gpu":
		if o.nproc = countGPUs("/dev"); o.nproc == 0 {
			return errors.New("this machine has no GPU (no /dev/nvidia0): give a number, or cpu")
		}
	default:
		if o.nproc, err = number(s, 1, maxProcs); err != nil {
			return errors.New("want a positive number, auto, cpu or gpu")
		}
	}
	return nil
}

// countGPUs counts NVIDIA's device files, one for each GPU.
func countGPUs(dev string) int {
	files, _ := filepath.Glob(filepath.Join(dev, "nvidia[0-9]*")) // the pattern is good
	return len(files)
}

func setStandalone(o *options, s string) error {
	on, err := strconv.ParseBool(s)
	if err != nil {
		return errors.New("want 1 or 0")
	}
	o.standalone = on
	return nil
}

func setEndpoint(o *options, s string) error {
	host, port := s, "0"
	if h, p, err := net.SplitHostPort(s); err == nil {
		host, port = h, p
	}
	if err := setHost(func(o *options) *string { return &o.endpoint.Addr })(o, host); err != nil {
		return errors.New("want host:port")
	}
	n, err := number(port, 0, maxPort)
	if err != nil {
		return errors.New("want host:port")
	}
	o.endpoint.Port = n
	return nil
}

// backends are torchrun's names and gorun's; static alone serves without --standalone.
var backends = []string{"static", "c10d", "etcd", "etcd-v2", "embedded"}

func setBackend(o *options, s string) error {
	if !slices.Contains(backends, s) {
		return fmt.Errorf("no such backend%s: want static", didYouMean(s, backends))
	}
	o.backend = s
	return nil
}

// setConf reads k=v,k2=v2; torchrun's users quote values, so quotes are dropped.
func setConf(o *options, s string) error {
	for item := range strings.SplitSeq(s, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		key, text, ok := strings.Cut(item, "=")
		if !ok {
			return fmt.Errorf("%s has no value: want pairs key=value with commas between", quote(item))
		}
		key, text = strings.TrimSpace(key), strings.Trim(strings.TrimSpace(text), `'"`)
		switch key {
		case "rank":
			n, err := number(text, 0, maxNodes-1)
			if err != nil {
				return fmt.Errorf("rank: %w", err)
			}
			o.confRank = &n
		case "timeout": // nothing waits, but a wrong value is still a mistake
			if _, err := number(text, 1, maxRestarts); err != nil {
				return fmt.Errorf("timeout: %w", err)
			}
		default:
			return fmt.Errorf("no such key %s%s: want rank or timeout", quote(key), didYouMean(key, []string{"rank", "timeout"}))
		}
	}
	return nil
}

func setShutdown(o *options, s string) error {
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil || !(seconds >= 0 && seconds <= 1e6) {
		return errors.New("want a number of seconds, 0 or more")
	}
	o.grace = time.Duration(seconds * float64(time.Second))
	return nil
}

func setInterval(_ *options, s string) error {
	if seconds, err := strconv.ParseFloat(s, 64); err != nil || !(seconds > 0) {
		return errors.New("want a positive number of seconds")
	}
	return nil
}

func setStartMethod(_ *options, s string) error {
	if !slices.Contains([]string{"spawn", "fork", "forkserver"}, s) {
		return errors.New("want spawn, fork or forkserver")
	}
	return nil
}

func setRedirects(o *options, s string) (err error) { o.redirects, err = parseStd(s); return err }
func setTee(o *options, s string) (err error)       { o.tee, err = parseStd(s); return err }

// parseStd drops the value from the error: the caller says it.
func parseStd(s string) (launcher.StdMap, error) {
	m, err := launcher.ParseStd(s)
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), strconv.Quote(s)+": "))
	}
	return m, err
}

func setNumber(low, high int, at func(*options) *int) func(*options, string) error {
	return func(o *options, s string) (err error) {
		*at(o), err = number(s, low, high)
		return err
	}
}

func setText(want string, at func(*options) *string) func(*options, string) error {
	return func(o *options, s string) error {
		if strings.TrimSpace(s) == "" || strings.ContainsFunc(s, unicode.IsControl) {
			return errors.New("want " + want)
		}
		*at(o) = s
		return nil
	}
}

// setHost takes a host name or an IP address, the latter in brackets if one likes.
func setHost(at func(*options) *string) func(*options, string) error {
	return func(o *options, s string) error {
		if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
			s = s[1 : len(s)-1]
		}
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("[]/", r) }) {
			return errors.New("want a host name or an IP address")
		}
		*at(o) = s
		return nil
	}
}

func number(s string, low, high int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("want a number from %d to %d", low, high)
	}
	return n, nil
}

// quote keeps a value on one line, and plain if it can be.
func quote(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r == ' ' || !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
