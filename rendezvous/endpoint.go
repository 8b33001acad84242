package rendezvous

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gorun/gorun/env/network"
)

// The default ports of endpoints.
const (
	EmbeddedPort = 29400 // of a server that an agent hosts; torchrun's
	EtcdPort     = 2379  // of an etcd that runs by itself
)

const maxName, maxLabel = 253, 63 // bytes of a host name, and of what is between its dots

// An Endpoint is the address where nodes meet, as the user wrote it.
type Endpoint struct {
	Host string // a name in lower case or an IP address, without brackets; never all addresses, nor a multicast one
	Port int    // 1 to 65535
}

// String returns host:port, with an IPv6 address in brackets. ParseEndpoint parses it.
func (e Endpoint) String() string { return net.JoinHostPort(e.Host, strconv.Itoa(e.Port)) }

// IsLoopback reports whether no other machine can reach the endpoint, as it is written: names are not looked up.
func (e Endpoint) IsLoopback() bool { return network.IsLoopback(e.Host) }

// ParseEndpoints parses endpoints that are separated by commas, at least one and none of them twice. port is the
// default port.
func ParseEndpoints(list string, port int) ([]Endpoint, error) {
	texts := strings.Split(list, ",")
	endpoints := make([]Endpoint, 0, len(texts))
	for i, text := range texts {
		if strings.TrimSpace(text) == "" && len(texts) > 1 {
			return nil, fmt.Errorf("endpoint %d of %q is empty", i+1, list)
		}
		e, err := ParseEndpoint(text, port)
		if err != nil {
			return nil, err
		}
		if slices.Contains(endpoints, e) {
			return nil, fmt.Errorf("endpoint %s occurs twice in %q", e, list)
		}
		endpoints = append(endpoints, e)
	}
	return endpoints, nil
}

// ParseEndpoint parses host, host:port, [IPv6] or [IPv6]:port, and ignores blanks around it. port is the default port.
func ParseEndpoint(text string, port int) (Endpoint, error) {
	text = strings.TrimSpace(text)
	e, err := parseEndpoint(text, port)
	if err != nil {
		return Endpoint{}, fmt.Errorf("endpoint %q: %w", text, err)
	}
	return e, nil
}

func parseEndpoint(text string, port int) (Endpoint, error) {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		return Endpoint{}, fmt.Errorf("want a host and a port without a scheme, as in %q", rest)
	}
	var host, digits string
	var named bool
	if inner, ok := strings.CutPrefix(text, "["); ok {
		address, after, closed := strings.Cut(inner, "]")
		if a, err := parseAddr(address); err != nil || !a.Is6() || !closed {
			return Endpoint{}, errors.New("want an IPv6 address in the brackets, as in [2001:db8::1]:29400")
		}
		digits, named = strings.CutPrefix(after, ":")
		if after != "" && !named {
			return Endpoint{}, fmt.Errorf("want nothing or a colon and a port after the brackets, not %q", after)
		}
		host = address
	} else if strings.Count(text, ":") > 1 {
		return Endpoint{}, bare6(text)
	} else {
		host, digits, named = strings.Cut(text, ":")
	}
	if named {
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || n == 0 {
			return Endpoint{}, fmt.Errorf("port %q: want a number from 1 to 65535", digits)
		}
		port = int(n)
	}
	host, err := parseHost(host)
	return Endpoint{Host: host, Port: port}, err
}

// bare6 says how to write an address with several colons and no brackets.
func bare6(text string) error {
	if _, err := parseAddr(text); err == nil {
		return fmt.Errorf("want an IPv6 address in brackets, as in [%s]", text)
	}
	last := strings.LastIndexByte(text, ':')
	if _, err := parseAddr(text[:last]); err == nil {
		return fmt.Errorf("want an IPv6 address in brackets, as in [%s]%s", text[:last], text[last:])
	}
	return errors.New("want host:port, and an IPv6 address in brackets")
}

// parseAddr is like netip.ParseAddr, but accepts only printable addresses: ParseAddr accepts any bytes in the name of an interface.
func parseAddr(s string) (netip.Addr, error) {
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return netip.Addr{}, errors.New("not visible ASCII characters")
	}
	return netip.ParseAddr(s)
}

// parseHost returns host in its canonical form, so that two spellings of an endpoint are equal.
func parseHost(host string) (string, error) {
	if host == "" {
		return "", errors.New("the host is missing: want host or host:port")
	}
	if a, err := parseAddr(host); err == nil {
		switch a = a.Unmap(); {
		case a.IsUnspecified():
			return "", errors.New("it means all addresses: want one that other nodes can connect to")
		case a.IsMulticast():
			return "", errors.New("it is a multicast address: want one that other nodes can connect to")
		}
		return a.String(), nil
	}
	name := strings.TrimSuffix(host, ".") // with a dot at the end no domain is added to it
	if len(name) > maxName {
		return "", fmt.Errorf("the host name has %d bytes: want at most %d", len(name), maxName)
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !isLabel(label) {
			return "", fmt.Errorf("%q is not a host name: want letters, digits, hyphens and dots", host)
		}
	}
	if strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		return "", fmt.Errorf("%q is neither an IPv4 address nor a host name", host)
	}
	return strings.ToLower(host), nil
}

// isLabel also accepts underscores, which occur in the names of containers.
func isLabel(s string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	return s != "" && len(s) <= maxLabel && s[0] != '-' && s[len(s)-1] != '-' && !strings.ContainsFunc(s, other)
}
