package hostfile

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/gorun/gorun/env/manager"
)

// parseLine returns the hosts of a line of a hostfile, which is not blank: what parseHosts accepts, then keys with values.
func parseLine(line string) ([]manager.Host, error) {
	sides := strings.Split(line, "=")
	for i := range sides {
		sides[i] = strings.TrimSpace(sides[i]) // Open MPI allows blanks around the equals sign
	}
	fields := strings.Fields(strings.Join(sides, "="))
	if len(splitOutside(fields[0])) > 1 {
		return nil, fmt.Errorf("%s: want one host in a line, or a range such as n[01-16]", manager.Shorten(fields[0]))
	}
	hosts, err := parseHosts(fields[0])
	if err != nil {
		return nil, err
	}
	host, most := hosts[0], 0
	for _, field := range fields[1:] {
		if err := parseKey(&host, field, &most); err != nil {
			return nil, err
		}
	}
	switch {
	case most > 0 && host.Slots == 0:
		return nil, errors.New("max_slots without slots")
	case most > 0 && most < host.Slots:
		return nil, fmt.Errorf("slots=%d is more than max_slots=%d", host.Slots, most)
	}
	for i := range hosts {
		hosts[i].User, hosts[i].Slots = host.User, host.Slots
	}
	return hosts, nil
}

// parseKey parses a key and its value. Since there are never more workers than slots, max_slots is only for a check.
func parseKey(h *manager.Host, field string, maxSlots *int) (err error) {
	key, text, _ := strings.Cut(field, "=")
	switch key {
	case "slots":
		if h.Slots != 0 {
			return errors.New("the number of slots is there twice")
		}
		h.Slots, err = manager.ParseSlots(text)
	case "max_slots", "max-slots":
		*maxSlots, err = manager.ParseSlots(text)
	case "user", "username":
		if h.User != "" {
			return errors.New("the user is there twice")
		}
		h.User, err = text, checkUser(text)
	case "binding":
	default:
		err = errors.New("want slots=N, max_slots=N, user=NAME or binding=NAME")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", manager.Shorten(field), err)
	}
	return nil
}

// parseHosts parses a host, or a range of them, with a user before it and slots behind it if there are any: me@n[01-04]:8. It returns
// at least one.
func parseHosts(text string) ([]manager.Host, error) {
	var host manager.Host
	rest := text
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		host.User, rest = rest[:i], rest[i+1:]
		if err := checkUser(host.User); err != nil {
			return nil, fmt.Errorf("%s: %w", manager.Shorten(text), err)
		}
	}
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, ']') {
		slots, err := manager.ParseSlots(rest[i+1:])
		if err != nil {
			return nil, fmt.Errorf("%s: behind the colon: %w", manager.Shorten(text), err)
		}
		host.Slots, rest = slots, rest[:i]
	}
	names, err := parseNames(rest)
	if err != nil {
		return nil, err
	}
	hosts := make([]manager.Host, len(names))
	for i, name := range names {
		hosts[i] = manager.Host{Name: name, User: host.User, Slots: host.Slots}
	}
	return hosts, nil
}

// parseNames returns the address that an IPv6 address in brackets stands for, or else the names of a range.
func parseNames(text string) ([]string, error) {
	if !strings.Contains(text, ":") {
		return manager.ExpandHosts(text)
	}
	inside := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	a, err := netip.ParseAddr(inside)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is neither a host nor an IPv6 address in brackets", manager.Shorten(text))
	case len(inside)+2 != len(text):
		return nil, fmt.Errorf("%s: want an IPv6 address in brackets, as in [%s]", manager.Shorten(text), inside)
	case a.Zone() != "" && manager.CheckHostName(a.Zone()) != nil:
		return nil, fmt.Errorf("%s: %w", manager.Shorten(text), manager.CheckHostName(a.Zone()))
	}
	return []string{inside}, nil
}

// checkUser refuses what cannot be the name of a user, and what a program such as ssh could take for an option.
func checkUser(user string) error {
	bad := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(`._-+@\`, r)
	}
	if user == "" || user[0] == '-' || len(user) > manager.MaxHostName || strings.ContainsFunc(user, bad) {
		return fmt.Errorf("%s cannot be the name of a user", manager.Shorten(user))
	}
	return nil
}
