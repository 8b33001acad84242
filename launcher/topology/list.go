package topology

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseList reads a set of CPUs or nodes as the kernel writes it: numbers below 65536 and ranges of them, in
// ascending order, such as 0-3,8,10-11. The empty string is the empty set. The error is one line.
func ParseList(s string) ([]int, error) {
	if s == "" {
		return nil, nil
	}
	var list []int
	next := uint64(0) // the least number that may follow
	for item := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		low, err1 := strconv.ParseUint(first, 10, 16)
		high, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || low < next || high < low {
			return nil, fmt.Errorf("%.20q in the list %.40q: want numbers below 65536 in ascending order, such as 0-3,8,10-11", item, s)
		}
		for n := low; n <= high; n++ {
			list = append(list, int(n))
		}
		next = high + 1
	}
	return list, nil
}

// FormatList is the inverse of ParseList. The list must be sorted and without duplicates.
func FormatList(list []int) string {
	var b []byte
	for i := 0; i < len(list); {
		end := i + 1
		for end < len(list) && list[end] == list[end-1]+1 {
			end++
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(list[i]), 10)
		if end > i+1 {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(list[end-1]), 10)
		}
		i = end
	}
	return string(b)
}
