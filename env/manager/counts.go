package manager

import "strings"

// ExpandCounts returns the numbers of a list in which Slurm says how many tasks or CPUs each host has, such as that in
// SLURM_STEP_TASKS_PER_NODE: 4(x2),3 means 4, 4, 3. They are in the order of the hosts, and below 2^31. The error says at which
// character of list the problem is.
func ExpandCounts(list string) ([]int, error) {
	if err := checkLength(list); err != nil {
		return nil, err
	}
	var counts []int
	at := 0
	for text := range strings.SplitSeq(list, ",") {
		digits, repeat, repeated := strings.Cut(text, "(x")
		times, closed := "1", true
		if repeated {
			times, closed = strings.CutSuffix(repeat, ")")
		}
		count, ok1 := number(digits)
		repeats, ok2 := number(times)
		switch {
		case !ok1 || !ok2 || !closed || count >= 1<<31:
			return nil, problem(list, at, "%s is not a number such as 4, or 4(x2) for 4,4", Shorten(text))
		case repeats == 0:
			return nil, problem(list, at, "%s stands for no host", text)
		case repeats > uint64(MaxHosts-len(counts)):
			return nil, problem(list, at, "the list has more than %d numbers", MaxHosts)
		}
		for range repeats {
			counts = append(counts, int(count))
		}
		at += len(text) + 1
	}
	return counts, nil
}
