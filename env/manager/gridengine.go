package manager

import (
	"fmt"
	"strings"
)

var gridEngine = &Manager{Name: "Grid Engine", lists: []hostList{{"PE_HOSTFILE", true, parseTable(hostAndSlots)}}}

// hostAndSlots is for a file with a host, its slots and a queue in each line. The queue does not matter.
func hostAndSlots(fields []string) (name, slots string, err error) {
	if len(fields) < 2 {
		return "", "", fmt.Errorf("%s: want host, slots and queue", Shorten(strings.Join(fields, " ")))
	}
	return fields[0], fields[1], nil
}
