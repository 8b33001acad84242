package cli

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/gorun/gorun/launcher/topology"
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

var procKinds = []string{"auto", "cpu", "gpu", "xpu"}

func setNproc(o *options, s string) (err error) {
	switch s {
	case "auto", "gpu", "xpu":
		if o.nproc, err = countDevices(o.host, s); o.nproc > 0 || err != nil {
			return err
		}
		if s != "auto" {
			return fmt.Errorf("no such device is to be seen on this machine: want a number, or %s for one worker on each CPU", "cpu")
		}
		fallthrough
	case "cpu":
		o.nproc, err = topology.CPUCount(o.host.root)
		return err
	}
	if o.nproc, err = number(s, 1, maxProcs); err != nil {
		return fmt.Errorf("want a positive number, auto, cpu, gpu or xpu%s", didYouMean(s, procKinds))
	}
	return nil
}

// countDevices counts the devices of a kind that workers would see; auto takes the first kind of which there are any.
func countDevices(h host, kind string) (n int, err error) {
	kinds := []string{kind}
	if kind == "auto" {
		kinds = []string{"gpu", "xpu"}
	}
	for _, k := range kinds {
		devices, err := topology.Accelerators(h.root, k, h.lookup)
		if err != nil || len(devices.Names) > 0 {
			return len(devices.Names), err
		}
	}
	return 0, nil
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
		return fmt.Errorf("want host:port, with a port from 0 to %d", maxPort)
	}
	o.endpoint.Port = n
	return nil
}

// backends are torchrun's names and gorun's. For several nodes there is only static.
var backends = []string{"static", "c10d", "etcd", "etcd-v2", "etcd-v3", "embedded"}

// A confKey is a key of --rdzv-conf.
type confKey struct {
	name  string
	check func(string) error
}

func seconds(s string) error { _, err := number(s, 0, maxRestarts); return err }

func oneOf(choices ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(choices, strings.ToLower(s)) {
			return fmt.Errorf("want %s%s", anyOf(choices), didYouMean(s, choices))
		}
		return nil
	}
}

func anyText(string) error { return nil }

// confKeys are torchrun's keys, whichever backend it has them for. One node uses none of them, static only rank; but a
// wrong key or value is a mistake all the same.
var confKeys = []confKey{
	{"rank", func(s string) error { _, err := number(s, 0, maxNodes-1); return err }},
	{"timeout", seconds}, {"read_timeout", seconds},
	{"join_timeout", seconds}, {"last_call_timeout", seconds}, {"close_timeout", seconds},
	{"heartbeat_timeout", seconds}, {"keep_alive_interval", seconds}, {"keep_alive_max_attempt", seconds},
	{"store_type", oneOf("tcp", "file")},
	{"is_host", oneOf("true", "false", "1", "0", "yes", "no", "y", "n", "t", "f", "on", "off")},
	{"use_libuv", oneOf("true", "false", "1", "0")},
	{"protocol", oneOf("http", "https")},
	{"ssl_cert", anyText}, {"ssl_cert_key", anyText}, {"ca_cert", anyText}, {"etcd_prefix", anyText},
}

func confNames() (names []string) {
	for _, k := range confKeys {
		names = append(names, k.name)
	}
	return names
}

// setConf reads k=v,k2=v2; torchrun's users quote values, so quotes are dropped.
func setConf(o *options, s string) error {
	for item := range strings.SplitSeq(s, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		name, text, ok := strings.Cut(item, "=")
		if !ok {
			return fmt.Errorf("%s has no value: want pairs key=value with commas between", quote(item))
		}
		name, text = strings.Trim(strings.TrimSpace(name), `'"`), strings.Trim(strings.TrimSpace(text), `'"`)
		i := slices.IndexFunc(confKeys, func(k confKey) bool { return k.name == name })
		if i < 0 {
			return fmt.Errorf("no such key %s%s: want %s", quote(name), didYouMean(name, confNames()), anyOf(confNames()))
		}
		if err := confKeys[i].check(text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if name == "rank" {
			n, _ := number(text, 0, maxNodes-1) // checked
			o.confRank = &n
		}
	}
	return nil
}
