package manager

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Limits on a list of hosts with slots. A list beyond them, or with more than MaxHosts hosts, is an error.
const (
	MaxFile  = 8 << 20 // bytes of a file
	MaxSlots = 65536   // of a host
)

// A Host is one on which workers run.
type Host struct {
	Name  string // one that CheckHostName accepts, or an IP address, without brackets
	User  string // who logs in there, or empty if nobody says. It does not begin with a hyphen
	Slots int    // how many workers there are to be, at least 1; or 0 if nobody says
}

// A hostList is a variable that has the hosts of a job, or that names a file with them.
type hostList struct {
	variable string
	isFile   bool
	parse    func(file, text string) ([]Host, error)
}

// HostsOfJob returns the hosts that a resource manager lists for the job of this process, and the variable that lists them,
// with its value. All are empty if no manager does.
func HostsOfJob(lookup func(string) (string, bool)) (hosts []Host, variable, value string, err error) {
	for _, m := range managers {
		for _, l := range m.lists {
			value, _ := lookup(l.variable)
			if value == "" {
				continue
			}
			text := value
			if l.isFile {
				text, err = read(value)
			}
			if err == nil {
				hosts, err = l.parse(value, text)
			}
			return hosts, l.variable, value, err
		}
	}
	return nil, "", "", nil
}

func read(name string) (string, error) {
	file, err := os.Open(name)
	if err == nil {
		defer func() { _ = file.Close() }() // it was only read
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(file, MaxFile+1)); err == nil {
			return string(text), nil
		}
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	return "", fmt.Errorf("cannot read it: %w", err)
}

// parseTable reads a file of which columns returns the host and the slots in a line. Errors begin with the name of the file, and the number
// of the line.
func parseTable(columns func(fields []string) (name, slots string, err error)) func(file, text string) ([]Host, error) {
	return func(file, text string) ([]Host, error) {
		if len(text) > MaxFile {
			return nil, fmt.Errorf("%s: the file is longer than %d bytes", file, MaxFile)
		}
		all, number := sum{at: make(map[string]int)}, 0
		for line := range strings.Lines(text) {
			number++
			fields := strings.Fields(line)
			if len(fields) == 0 {
				continue
			}
			name, slots, err := columns(fields)
			if err == nil {
				err = all.add(name, slots)
			}
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, number, err)
			}
		}
		if len(all.hosts) == 0 {
			return nil, fmt.Errorf("%s: the file names no host", file)
		}
		return all.hosts, nil
	}
}

// hostInLine is for a file with a host in each line, once for each slot.
func hostInLine(fields []string) (name, slots string, err error) {
	if len(fields) > 1 {
		return "", "", fmt.Errorf("%s: want one host in a line", Shorten(strings.Join(fields, " ")))
	}
	return fields[0], "1", nil
}

// A sum is a list that adds the slots of a host that occurs again.
type sum struct {
	hosts []Host
	at    map[string]int // the index of each host, by its name in lower case
}

func (s *sum) add(name, slots string) error {
	if err := CheckHostName(name); err != nil {
		return fmt.Errorf("%s: %w", Shorten(name), err)
	}
	more, err := ParseSlots(slots)
	if err != nil {
		return fmt.Errorf("%s: %w", Shorten(name+" "+slots), err)
	}
	key := strings.ToLower(strings.TrimSuffix(name, "."))
	at, known := s.at[key]
	switch {
	case !known && len(s.hosts) == MaxHosts:
		return ErrTooMany
	case !known:
		s.at[key] = len(s.hosts)
		s.hosts = append(s.hosts, Host{Name: name, Slots: more})
	case s.hosts[at].Slots+more > MaxSlots:
		return fmt.Errorf("host %s has more than %d slots", name, MaxSlots)
	default:
		s.hosts[at].Slots += more
	}
	return nil
}

// ErrTooMany is the error of a list with more than MaxHosts hosts.
var ErrTooMany = fmt.Errorf("the list has more than %d hosts", MaxHosts)

// ParseSlots reads a number of slots.
func ParseSlots(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxSlots {
		return 0, fmt.Errorf("want a number of slots from 1 to %d", MaxSlots)
	}
	return n, nil
}
