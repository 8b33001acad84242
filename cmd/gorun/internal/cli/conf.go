package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A conf is the checked value of --rdzv-conf.
type conf map[string]string

// A confKey is a key of --rdzv-conf.
type confKey struct {
	name  string
	check func(string) error
}

// confKeys are torchrun's keys for all of its backends, followed by gorun's own. A job ignores keys that it does not need,
// but a wrong key or value is always an error.
var confKeys = []confKey{
	{"rank", func(s string) error { _, err := number(s, 0, maxNodes-1); return err }},
	{"timeout", isDuration}, {"read_timeout", isDuration},
	{"join_timeout", isDuration}, {"last_call_timeout", isDuration}, {"close_timeout", isDuration},
	{"heartbeat_timeout", isDuration}, {"keep_alive_interval", isDuration},
	{"keep_alive_max_attempt", func(s string) error { _, err := number(s, 1, maxRestarts); return err }},
	{"store_type", oneOf("tcp", "file")},
	{"is_host", oneOf(slices.Sorted(maps.Keys(truths))...)},
	{"use_libuv", oneOf("true", "false", "1", "0")},
	{"protocol", oneOf("http", "https")},
	{"ssl_cert", isFile}, {"ssl_cert_key", isFile}, {"ca_cert", isFile}, {"etcd_prefix", isPrefix},
	{"ttl", isDuration}, {"after_end", oneOf("refuse", "result")}, {"username", isName}, {"password_file", isFile},
}

var truths = map[string]bool{
	"true": true, "1": true, "yes": true, "y": true, "t": true, "on": true,
	"false": false, "0": false, "no": false, "n": false, "f": false, "off": false,
}

func isDuration(s string) error { _, err := toSeconds(s); return err }

// toSeconds accepts whole numbers and fractions.
func toSeconds(s string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil || !(seconds >= 0 && seconds <= maxSeconds) {
		return 0, errors.New("want a number of seconds, 0 or more")
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

func isFile(s string) error {
	if s == "" {
		return errors.New("want a file name")
	}
	return nil
}

func isName(s string) error {
	if s == "" || strings.Contains(s, ":") {
		return errors.New("want a user name; put the password into a password_file")
	}
	return nil
}

func isPrefix(s string) error {
	if !strings.HasPrefix(s, "/") || len(s) > maxPrefix {
		return fmt.Errorf("want a prefix for keys in etcd that begins with a slash and has at most %d bytes", maxPrefix)
	}
	return nil
}

const maxPrefix = 256

func oneOf(choices ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(choices, strings.ToLower(s)) {
			return fmt.Errorf("want %s%s", anyOf(choices), didYouMean(s, choices))
		}
		return nil
	}
}

func confNames() (names []string) {
	for _, k := range confKeys {
		names = append(names, k.name)
	}
	return names
}

// unquoted removes blanks and quotes around a text, because torchrun's users quote values.
func unquoted(text string) string { return strings.Trim(strings.TrimSpace(text), `'"`) }

// setConf reads k=v,k2=v2. A key may have hyphens instead of underscores, as flags may.
func setConf(o *flags, s string) error {
	for item := range strings.SplitSeq(s, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		name, text, ok := strings.Cut(item, "=")
		if !ok {
			return fmt.Errorf("%s has no value: want key=value pairs separated by commas", quote(item))
		}
		name, text = strings.ReplaceAll(unquoted(name), "-", "_"), unquoted(text)
		i := slices.IndexFunc(confKeys, func(k confKey) bool { return k.name == name })
		if i < 0 {
			return fmt.Errorf("no such key %s%s: want %s", quote(name), didYouMean(name, confNames()), anyOf(confNames()))
		}
		if err := confKeys[i].check(text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if o.conf == nil {
			o.conf = make(conf)
		}
		o.conf[name] = text
	}
	return nil
}

// seconds returns the value of the first of these keys that is set.
func (c conf) seconds(otherwise time.Duration, names ...string) time.Duration {
	for _, name := range names {
		if text, ok := c[name]; ok {
			d, _ := toSeconds(text)         // checked
			return max(d, time.Millisecond) // none at all is asked for, not the default
		}
	}
	return otherwise
}

// number returns the value of a key.
func (c conf) number(otherwise int, name string) int {
	if text, ok := c[name]; ok {
		otherwise, _ = number(text, 0, maxRestarts) // checked
	}
	return otherwise
}

// ttl returns how long a node may give no sign of life before it counts as lost. It is the product of torchrun's two keys.
func (c conf) ttl() time.Duration {
	_, interval := c["keep_alive_interval"]
	_, attempts := c["keep_alive_max_attempt"]
	otherwise := 10 * time.Second
	if interval || attempts {
		otherwise = c.seconds(5*time.Second, "keep_alive_interval") * time.Duration(c.number(3, "keep_alive_max_attempt"))
	}
	return max(c.seconds(otherwise, "ttl"), time.Second)
}

// hosts returns the value of is_host; nil: it is not set.
func (c conf) hosts() *bool {
	text, ok := c["is_host"]
	if !ok {
		return nil
	}
	return new(truths[strings.ToLower(text)])
}

// prefix returns the prefix of the keys in etcd, with a slash at its end; empty: it is not set.
func (c conf) prefix() string {
	prefix := c["etcd_prefix"]
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		return prefix
	}
	return prefix + "/"
}
