// Package hostfile reads lists of hosts: the hostfiles of Open MPI, MPICH, DeepSpeed and Horovod, and the value of --hosts. It looks up no
// name, and opens no file itself.
package hostfile

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/gorun/gorun/env/manager"
)

// Parse reads a hostfile. A line names a host, with what one of these launchers knows about it:
//
//	n1 slots=8 max_slots=8   # Open MPI; DeepSpeed and Horovod: slots only
//	me@n2 slots=8            // Open MPI: the user
//	n3:8 user=me             /* MPICH */
//	n[04-16,20]-ib:8         # a host for each number, as Slurm and Flux write them
//	[2001:db8::1]:8          # IPv6
//
// For a host without slots, Open MPI takes the number of its cores, and MPICH 1; here, it has 0. MPICH's binding= has no effect.
//
// It is an error if a host occurs twice, or if there is none. The error begins with file, which is the name of the file, and with the
// number of the line, as in hosts.txt:3.
func Parse(file string, r io.Reader) ([]manager.Host, error) {
	read, err := io.ReadAll(io.LimitReader(r, manager.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	if len(read) > manager.MaxFile {
		return nil, fmt.Errorf("%s: the file is longer than %d bytes", file, manager.MaxFile)
	}
	list, number := newDistinct(), 0
	text, unended := withoutComments(string(read))
	for line := range strings.Lines(text) {
		if number++; strings.TrimSpace(line) == "" {
			continue
		}
		hosts, err := parseLine(line)
		if err == nil {
			err = list.add(hosts, fmt.Sprintf("in line %d", number))
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, number, err)
		}
	}
	switch {
	case unended != nil:
		return nil, fmt.Errorf("%s:%d: %w", file, 1+strings.Count(text, "\n"), unended)
	case len(list.hosts) == 0:
		return nil, fmt.Errorf("%s: the file names no host", file)
	}
	return list.hosts, nil
}

// ParseList reads the value of --hosts: hosts as in a hostfile, without keys such as slots=, and separated by commas, such as
// a:8,me@b:8,n[01-04]:8,[2001:db8::1]:8. It is an error if a host occurs twice.
func ParseList(list string) ([]manager.Host, error) {
	if len(list) > manager.MaxList {
		return nil, fmt.Errorf("the list of hosts has %d bytes; at most %d are allowed", len(list), manager.MaxList)
	}
	all := newDistinct()
	for i, text := range splitOutside(list) {
		hosts, err := parseHosts(text)
		if err == nil {
			err = all.add(hosts, fmt.Sprintf("in item %d", i+1))
		}
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return all.hosts, nil
}

// splitOutside splits a list at the commas that are not in brackets.
func splitOutside(list string) (items []string) {
	from, inside := 0, false
	for i := range len(list) {
		switch list[i] {
		case '[':
			inside = true
		case ']':
			inside = false
		case ',':
			if !inside {
				items, from = append(items, list[from:i]), i+1
			}
		}
	}
	return append(items, list[from:])
}

// A distinct is a list in which no host may occur twice.
type distinct struct {
	hosts []manager.Host
	seen  map[string]string // where each host is, by key
}

func newDistinct() *distinct { return &distinct{seen: make(map[string]string)} }

// add adds hosts. The text says where they are.
func (d *distinct) add(hosts []manager.Host, where string) error {
	if len(d.hosts)+len(hosts) > manager.MaxHosts {
		return manager.ErrTooMany
	}
	for _, h := range hosts {
		first, known := d.seen[key(h.Name)]
		switch {
		case known && first == where:
			return fmt.Errorf("host %s is there twice", h.Name)
		case known:
			return fmt.Errorf("host %s is already %s", h.Name, first)
		}
		d.seen[key(h.Name)] = where
	}
	d.hosts = append(d.hosts, hosts...)
	return nil
}

// key returns what is the same for all spellings of a name or an address.
func key(name string) string {
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// withoutComments returns text without comments: those from # or // to the end of the line, and those from /* to */, which may go
// over lines. If one does not end, it returns an error and the text before it.
func withoutComments(text string) (string, error) {
	var rest strings.Builder
	for i := 0; i < len(text); {
		switch {
		case text[i] == '#' || strings.HasPrefix(text[i:], "//"):
			length := strings.IndexByte(text[i:], '\n')
			if length < 0 {
				return rest.String(), nil
			}
			i += length
		case strings.HasPrefix(text[i:], "/*"):
			length := strings.Index(text[i+2:], "*/")
			if length < 0 {
				return rest.String(), errors.New(`"/*" without "*/"`)
			}
			rest.WriteString(" " + strings.Repeat("\n", strings.Count(text[i:i+2+length], "\n")))
			i += length + 4
		default:
			rest.WriteByte(text[i])
			i++
		}
	}
	return rest.String(), nil
}
