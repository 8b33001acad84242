package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

type options struct {
	ops                []string
	sizes, ranks       []int
	states, transports []string
	rounds             int
	time               time.Duration // of a cell, about
	together           bool          // all operations in one launch
	install            bool
	json, svg          string
}

var (
	usualOps = []string{"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "sendrecv", "barrier"}
	allOps   = append(slices.Clip(usualOps), "buckets")
	errHelp  = flag.ErrHelp
	memory   = map[string][]string{"both": {"hot", "dirty"}, "no": {"hot"}, "only": {"dirty"}}
)

// quick holds the values that -quick sets for flags that are not given: enough to check that everything works.
var quick = map[string]string{"sizes": "64,32K,1M", "ranks": "2", "rounds": "1", "time": "10ms"}

// parseFlags prints help to out.
func parseFlags(args []string, out io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench-comm", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	isQuick := f.Bool("quick", false, "few sizes, two ranks, one round, all operations in one launch")
	ops := f.String("ops", strings.Join(usualOps, ","), "the operations; buckets only if you name it")
	sizes := f.String("sizes", "64,512,4K,32K,256K,2M,16M,64M", "the sizes in bytes; K is 1024, M 1024 K")
	ranks := f.String("ranks", "2,4", "the numbers of ranks")
	transports := f.String("transport", "shm,tcp", "how bytes move; gloo has tcp only")
	dirty := f.String("dirty", "both", "both, no (hot memory only) or only")
	f.IntVar(&o.rounds, "rounds", 3, "launches of each contender and operation; their median counts")
	f.DurationVar(&o.time, "time", 100*time.Millisecond, "time to measure a cell for, about")
	f.BoolVar(&o.install, "install", true, "install what is missing, if this is root's and Debian's")
	f.StringVar(&o.json, "json", "", "`file` for all figures")
	f.StringVar(&o.svg, "svg", "", "`file` for a chart")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, errHelp) {
			f.SetOutput(out)
			f.PrintDefaults()
		}
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	given := make(map[string]bool)
	f.Visit(func(fl *flag.Flag) { given[fl.Name] = true })
	for name, value := range quick {
		if *isQuick && !given[name] {
			if err := f.Set(name, value); err != nil {
				return o, err
			}
		}
	}
	o.together = *isQuick
	if o.ops, err = parseNames("operation", *ops, allOps); err != nil {
		return o, err
	}
	if o.transports, err = parseNames("transport", *transports, []string{"shm", "tcp"}); err != nil {
		return o, err
	}
	if o.ranks, err = parseNumbers("ranks", *ranks); err != nil {
		return o, err
	}
	if o.sizes, err = parseNumbers("size", *sizes); err != nil {
		return o, err
	}
	if o.states = memory[*dirty]; o.states == nil {
		return o, fmt.Errorf("dirty %q: want both, no or only", *dirty)
	}
	return o, o.check()
}

// check rejects numbers that make no sense together.
func (o *options) check() error {
	if o.rounds < 1 || o.time <= 0 {
		return fmt.Errorf("%d rounds of %v: want more than none", o.rounds, o.time)
	}
	for _, ranks := range o.ranks {
		if ranks < 2 {
			return fmt.Errorf("%d ranks: want at least 2", ranks)
		}
		for _, size := range o.sizes {
			if size%(4*ranks) != 0 {
				return fmt.Errorf("size %d: want whole elements of 4 bytes for each of %d ranks", size, ranks)
			}
			if slices.Contains(o.ops, "buckets") && size%(4*buckets) != 0 {
				return fmt.Errorf("size %d: want whole elements of 4 bytes for each of %d buckets", size, buckets)
			}
		}
	}
	return nil
}

func parseNames(what, list string, known []string) ([]string, error) {
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown %s %q: want some of %s", what, name, strings.Join(known, ","))
		}
	}
	return names, nil
}

// parseNumbers returns a list in order.
func parseNumbers(what, list string) (numbers []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		digits, unit := strings.TrimRight(text, "KM"), 1
		switch text[len(digits):] {
		case "K":
			unit = 1 << 10
		case "M":
			unit = 1 << 20
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n <= 0 || n > 1<<30/unit || len(text)-len(digits) > 1 {
			return nil, fmt.Errorf("%s %q: want a number", what, text)
		}
		numbers = append(numbers, n*unit)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// field returns the text after a name and a colon, in the first line that contains them.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// numbers returns a list in the form that contenders accept.
func numbers(list []int) string {
	var b bytes.Buffer
	for i, n := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}
