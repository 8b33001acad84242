package manager

import (
	"fmt"
	"strings"
)

// Where LSF starts tasks by jsrun, the first line of LSB_DJOB_RANKFILE names the launch node, which is not one of the job's hosts. The
// parser does not know that.
var lsf = &Manager{Name: "LSF", lists: []hostList{
	{"LSB_MCPU_HOSTS", false, parsePairs},
	{"LSB_DJOB_RANKFILE", true, parseTable(hostInLine)},
}}

// parsePairs reads a host, a blank, its slots, a blank, the next host, and so on.
func parsePairs(_, list string) ([]Host, error) {
	if len(list) > MaxFile {
		return nil, fmt.Errorf("the list of hosts is longer than %d bytes", MaxFile)
	}
	fields := strings.Fields(list)
	if len(fields) == 0 || len(fields)%2 != 0 {
		return nil, fmt.Errorf(`%s: want a number of slots behind every host, as in "n1 8 n2 8"`, Shorten(list))
	}
	all := sum{at: make(map[string]int)}
	for i := 0; i < len(fields); i += 2 {
		if err := all.add(fields[i], fields[i+1]); err != nil {
			return nil, err
		}
	}
	return all.hosts, nil
}
