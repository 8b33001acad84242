package choice

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Tuning is a user's choice of ways.
type Tuning []rule

// A rule chooses ways of an operation, all of one table, for groups of so many ranks.
type rule struct {
	op    string
	ranks int
	ways  Ways
}

// anyRanks is the ranks of a rule for groups of any size.
const anyRanks = 0

// Parse reads a tuning: rules, separated by semicolons or line ends, of the form
//
//	all_reduce=doubling:32K,ring
//	all_reduce@4=ring
//
// The first way whose limit is not less than the bytes of the buffer is used. K, M and G are 1024 to the power of 1, 2
// and 3. The last way has no limit. The second rule is for groups of 4 ranks. Text after a # is a comment. The ways are
// those of one of all.
func Parse(text string, all ...Algorithms) (Tuning, error) {
	var t Tuning
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for item := range strings.SplitSeq(line, ";") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			r, err := parseRule(item, all)
			if err != nil {
				return nil, fmt.Errorf("tuning %q: %w", item, err)
			}
			t = append(t, r)
		}
	}
	return t, nil
}

func parseRule(text string, all []Algorithms) (rule, error) {
	what, ways, found := strings.Cut(text, "=")
	if !found {
		return rule{}, fmt.Errorf("want operation=way:bytes,way")
	}
	op, ranks, has := strings.Cut(strings.TrimSpace(what), "@")
	r := rule{op: op}
	if has {
		n, err := strconv.Atoi(ranks)
		if err != nil || n < 1 {
			return rule{}, fmt.Errorf("@%s: want a number of ranks", ranks)
		}
		r.ranks = n
	}
	for name := range strings.SplitSeq(ways, ",") {
		w, err := parseWay(name)
		if err != nil {
			return rule{}, err
		}
		r.ways = append(r.ways, w)
	}
	return r, r.check(all)
}

func parseWay(text string) (Way, error) {
	name, limit, has := strings.Cut(strings.TrimSpace(text), ":")
	if !has {
		return Way{Algorithm(name), Any}, nil
	}
	n, err := parseBytes(limit)
	return Way{Algorithm(name), n}, err
}

func parseBytes(text string) (int, error) {
	digits, unit := text, 1
	for i, suffix := range []string{"K", "M", "G"} {
		if cut, found := strings.CutSuffix(text, suffix); found {
			digits, unit = cut, 1<<(10*(i+1))
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > math.MaxInt/unit {
		return 0, fmt.Errorf("%q: want a number of bytes, as 512, 64K or 1M", text)
	}
	return n * unit, nil
}

// check returns what is wrong with r.
func (r *rule) check(all []Algorithms) error {
	first := r.ways[0].Algorithm
	at := slices.IndexFunc(all, func(a Algorithms) bool { return a.What(r.op, first) != "" })
	if at < 0 {
		return fmt.Errorf("%s has no way %q%s", r.op, first, known(r.op, all))
	}
	limit := Never
	for i, w := range r.ways {
		switch {
		case all[at].What(r.op, w.Algorithm) == "":
			return fmt.Errorf("%s has no way %q beside %q%s", r.op, w.Algorithm, first, known(r.op, all[at:at+1]))
		case w.isFixed():
			return fmt.Errorf("%s is taken wherever it can be", w.Algorithm)
		case w.UpTo <= limit:
			return fmt.Errorf("%s is for no more bytes than the way before it", w.Algorithm)
		case w.UpTo == Any && i+1 < len(r.ways):
			return fmt.Errorf("%s has no limit: it must be the last way", w.Algorithm)
		}
		limit = w.UpTo
	}
	if limit != Any {
		return fmt.Errorf("the last way must have no limit")
	}
	return nil
}

// known lists the ways of op, or the operations if there is no op.
func known(op string, all []Algorithms) string {
	var sets, ops []string
	for _, a := range all {
		var names []string
		for _, free := range a.Free(op) {
			names = append(names, string(free))
		}
		if names != nil {
			sets = append(sets, strings.Join(names, ", "))
		}
		ops = append(ops, a.Ops()...)
	}
	if sets == nil {
		slices.Sort(ops)
		return ": operations are " + strings.Join(slices.Compact(ops), ", ")
	}
	return ": want some of " + strings.Join(sets, "; or of ")
}

// String returns t as Parse reads it.
func (t Tuning) String() string {
	rules := make([]string, len(t))
	for i, r := range t {
		at := ""
		if r.ranks != anyRanks {
			at = fmt.Sprintf("@%d", r.ranks)
		}
		rules[i] = fmt.Sprintf("%s%s=%v", r.op, at, r.ways)
	}
	return strings.Join(rules, ";")
}
