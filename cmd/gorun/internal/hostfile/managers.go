package hostfile

import (
	"fmt"
	"io"
	"strings"

	"github.com/gorun/gorun/env/manager"
)

// ParseLines reads a file with a host in each line, once for each slot: PBS's $PBS_NODEFILE, and LSF's $LSB_DJOB_RANKFILE. Where LSF
// starts tasks by jsrun, the first line of the latter names the launch node, which is not one of the job's hosts. ParseLines does
// not know that. Errors begin as those of Parse.
func ParseLines(file string, r io.Reader) ([]Host, error) {
	return parseTable(file, r, func(fields []string) (string, string, error) {
		if len(fields) > 1 {
			return "", "", fmt.Errorf("%s: want one host in a line", manager.Shorten(strings.Join(fields, " ")))
		}
		return fields[0], "1", nil
	})
}

// ParseGridEngine reads the file $PE_HOSTFILE: host, slots and queue in each line, for which the queue does not matter. The slots of a
// host in several queues are added. Errors begin as those of Parse.
func ParseGridEngine(file string, r io.Reader) ([]Host, error) {
	return parseTable(file, r, func(fields []string) (string, string, error) {
		if len(fields) < 2 {
			return "", "", fmt.Errorf("%s: want host, slots and queue", manager.Shorten(strings.Join(fields, " ")))
		}
		return fields[0], fields[1], nil
	})
}

// parseTable reads a file of which columns returns the host and the slots in a line.
func parseTable(file string, r io.Reader, columns func(fields []string) (name, slots string, err error)) ([]Host, error) {
	all := newSum()
	err := eachLine(file, r, func(_ int, line string) error {
		name, slots, err := columns(strings.Fields(line))
		if err != nil {
			return err
		}
		return all.add(name, slots)
	})
	if err == nil && len(all.hosts) == 0 {
		err = fmt.Errorf("%s: the file names no host", file)
	}
	if err != nil {
		return nil, err
	}
	return all.hosts, nil
}

// ParsePairs reads LSF's $LSB_MCPU_HOSTS: a host, a blank, its slots, a blank, the next host, and so on.
func ParsePairs(list string) ([]Host, error) {
	if len(list) > MaxFile {
		return nil, fmt.Errorf("the list of hosts is longer than %d bytes", MaxFile)
	}
	fields := strings.Fields(list)
	if len(fields) == 0 || len(fields)%2 != 0 {
		return nil, fmt.Errorf(`%s: want a number of slots behind every host, as in "n1 8 n2 8"`, manager.Shorten(list))
	}
	all := newSum()
	for i := 0; i < len(fields); i += 2 {
		if err := all.add(fields[i], fields[i+1]); err != nil {
			return nil, err
		}
	}
	return all.hosts, nil
}

// A sum is a list that adds the slots of a host that occurs again.
type sum struct {
	hosts []Host
	at    map[string]int // the index of each host, by key
}

func newSum() *sum { return &sum{at: make(map[string]int)} }

func (s *sum) add(name, slots string) error {
	if err := manager.CheckHostName(name); err != nil {
		return fmt.Errorf("%s: %w", manager.Shorten(name), err)
	}
	more, err := parseSlots(slots)
	if err != nil {
		return fmt.Errorf("%s: %w", manager.Shorten(name+" "+slots), err)
	}
	at, known := s.at[key(name)]
	switch {
	case !known && len(s.hosts) == manager.MaxHosts:
		return errTooMany
	case !known:
		s.at[key(name)] = len(s.hosts)
		s.hosts = append(s.hosts, Host{Name: name, Slots: more})
	case s.hosts[at].Slots+more > MaxSlots:
		return fmt.Errorf("host %s has more than %d slots", name, MaxSlots)
	default:
		s.hosts[at].Slots += more
	}
	return nil
}
