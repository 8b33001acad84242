package manager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/testing/testkit"
)

func TestExpand(t *testing.T) {
	long := strings.Repeat("a", MaxHostName)
	for _, c := range []struct {
		list string
		want string // with blanks between the names
	}{
		{"n1", "n1"},
		{"n1,n2,m", "n1 n2 m"},
		{"n[1-3]", "n1 n2 n3"},
		{"n[3]", "n3"},
		{"n[01-03,20],m3", "n01 n02 n03 n20 m3"},
		{"n[08-11]", "n08 n09 n10 n11"},
		{"n[8-11]", "n8 n9 n10 n11"},
		{"n[98-101]", "n98 n99 n100 n101"},
		{"n[098-101]", "n098 n099 n100 n101"},
		{"n[08-100]", "n08 n09 " + numbers("n", 10, 100)},
		{"n[0-1]", "n0 n1"},
		{"n[00-01]", "n00 n01"},
		{"n[1-2]-ib", "n1-ib n2-ib"},
		{"n[1-2]-ib.example.com,x", "n1-ib.example.com n2-ib.example.com x"},
		{"r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02"},
		{"r[1-2][5,7]", "r15 r17 r25 r27"},
		{"[1-2]a", "1a 2a"},
		{"10.0.0.[7-8]", "10.0.0.7 10.0.0.8"},
		{"a,a", "a a"},
		{"N_1.x-y", "N_1.x-y"},
		{"n[999999999999999998-999999999999999999]", "n999999999999999998 n999999999999999999"},
		{long, long},
		{"n[0-65535]", numbers("n", 0, 65535)},
	} {
		got, err := ExpandHosts(c.list)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%q: %.200q, %v; want %.200q", c.list, got, err, c.want)
		}
	}
}

func numbers(prefix string, from, to int) string {
	var names []string
	for i := from; i <= to; i++ {
		names = append(names, fmt.Sprint(prefix, i))
	}
	return strings.Join(names, " ")
}

func TestExpandErrors(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"", `"", character 1: a host has no name`},
		{"a,", `"a,", character 3: a host has no name`},
		{",a", `",a", character 1: a host has no name`},
		{"a,,b", `"a,,b", character 3: a host has no name`},
		{"n[1-3", `"n[1-3", character 2: "[" without "]"`},
		{"a,n[", `"a,n[", character 4: "[" without "]"`},
		{"n1-3]", `"n1-3]", character 5: "]" without "["`},
		{"n[]", `"n[]", character 3: "" in brackets is not a number`},
		{"n[1,]", `"n[1,]", character 5: "" in brackets is not a number`},
		{"n[1,x]", `"n[1,x]", character 5: "x" in brackets is not a number`},
		{"n[1-]", `character 3: "1-" in brackets is not a number`},
		{"n[-1]", `character 3: "-1" in brackets is not a number`},
		{"n[1-2-3]", `character 3: "1-2-3" in brackets is not a number`},
		{"n[+1]", `"+1" in brackets is not a number`},
		{"n[1_0]", `"1_0" in brackets is not a number`},
		{"n[[1-2]]", `character 3: "[1-2" in brackets is not a number`},
		{"n[1000000000000000000]", `of at most 18 digits each`},
		{"n[3-1]", `"n[3-1]", character 3: the range 3-1 ends before it begins`},
		{"n[1,4-010]", `character 5: the numbers of the range 4-010 have leading zeros for different widths`},
		{"n[001-02]", `leading zeros for different widths`},
		{"n1 " + strings.Repeat("a", MaxHostName), `character 3: ' ' cannot be in the name of a host`},
		{"n1 n2", `"n1 n2", character 3: ' ' cannot be in the name of a host`},
		{"a,n1;x", `character 5: ';' cannot be in the name of a host`},
		{"n[1]é", `character 5: 'é' cannot be in the name of a host`},
		{"n\xff", `'�' cannot be in the name of a host`},
		{"(null)", `character 1: '(' cannot be in the name of a host`},
		{"-oProxyCommand", `"-oProxyCommand", character 1: the name "-oProxyCommand" begins with a hyphen`},
		{"a,-[1-2]", `character 3: the name "-1" begins with a hyphen`},
		{"n[0-65536]", `character 2: the brackets mean more than 65536 hosts`},
		{"n[0-999999999999999999]", `character 2: the brackets mean more than 65536 hosts`},
		{"n[1-60000,1-6000]", `character 2: the brackets mean more than 65536 hosts`},
		{"n[1-256]m[1-257]", `character 10: with these brackets, the name means more than 65536 hosts`},
		{"n[1-65536],m", `character 12: the list has more than 65536 hosts`},
		{strings.Repeat("a", MaxHostName+1), `character 1: the name is longer than 253 bytes`},
		{strings.Repeat("a", MaxHostName) + "[1]", `character 1: the name is longer than 253 bytes`},
		{strings.Repeat("a", MaxHostName-1) + "[9-10]", `character 1: the name is longer than 253 bytes`},
		{"x," + strings.Repeat("[1]", MaxHostName+1), `character 3: the name is longer than 253 bytes`},
		{strings.Repeat("a,", MaxList/2) + "a", `has 262145 bytes; at most 262144 are allowed`},
	} {
		got, err := ExpandHosts(c.list)
		if err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
			t.Errorf("%.80q: %.80q, %v; want an error with %q", c.list, got, err, c.want)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%.80q: an error of %d bytes", c.list, len(err.Error()))
		}
	}
}

// TestExpandGenerated: a list of names, ranges and text means what it was made from.
func TestExpandGenerated(t *testing.T) {
	text := rapid.StringMatching(`[a-zA-Z_.][a-zA-Z0-9_.-]{0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		var patterns, want []string
		for range rapid.IntRange(1, 4).Draw(t, "patterns") {
			pattern, names := text.Draw(t, "prefix"), []string(nil)
			names = []string{pattern}
			for range rapid.IntRange(0, 3).Draw(t, "brackets") {
				bracket, numbers := drawBracket(t)
				suffix := rapid.SampledFrom([]string{"", "-ib", ".x"}).Draw(t, "suffix")
				pattern += "[" + bracket + "]" + suffix
				var longer []string
				for _, name := range names {
					for _, number := range numbers {
						longer = append(longer, name+number+suffix)
					}
				}
				names = longer
			}
			patterns, want = append(patterns, pattern), append(want, names...)
		}
		list := strings.Join(patterns, ",")
		if got, err := ExpandHosts(list); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %q, %v; want %q", list, got, err, want)
		}
	})
}

// drawBracket returns the text of a bracket, and the numbers that it means.
func drawBracket(t *rapid.T) (string, []string) {
	var texts, numbers []string
	for range rapid.IntRange(1, 3).Draw(t, "ranges") {
		low := rapid.IntRange(0, 1200).Draw(t, "low")
		high := low + rapid.IntRange(0, 4).Draw(t, "more")
		width := rapid.SampledFrom([]int{1, len(fmt.Sprint(high)), len(fmt.Sprint(high)) + 2}).Draw(t, "width")
		if width <= len(fmt.Sprint(low)) {
			width = 1
		}
		texts = append(texts, fmt.Sprintf("%0*d-%0*d", width, low, width, high))
		for n := low; n <= high; n++ {
			numbers = append(numbers, fmt.Sprintf("%0*d", width, n))
		}
	}
	return strings.Join(texts, ","), numbers
}

func TestExpandCounts(t *testing.T) {
	for list, want := range map[string][]int{
		"4":            {4},
		"1(x2)":        {1, 1},
		"4(x2),3":      {4, 4, 3},
		"2,1(x3),0":    {2, 1, 1, 1, 0},
		"2147483647":   {1<<31 - 1},
		"08(x1)":       {8},
		"5(x65535),05": append(slices.Repeat([]int{5}, 65535), 5),
	} {
		if got, err := ExpandCounts(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %.80v, %v; want %.80v", list, got, err, want)
		}
	}
	for list, want := range map[string]string{
		"":                                   `"", character 1: "" is not a number such as 4, or 4(x2) for 4,4`,
		"4,":                                 `"4,", character 3: "" is not a number`,
		"4,x":                                `character 3: "x" is not a number`,
		"-1":                                 `"-1" is not a number`,
		"4(x2":                               `"4(x2" is not a number`,
		"4(x)":                               `"4(x)" is not a number`,
		"4(2)":                               `"4(2)" is not a number`,
		"4(x2)(x2)":                          `"4(x2)(x2)" is not a number`,
		"4(x2)3":                             `"4(x2)3" is not a number`,
		"2147483648":                         `is not a number`,
		"1,4(x0)":                            `character 3: 4(x0) stands for no host`,
		"1,4(x65536)":                        `character 3: the list has more than 65536 numbers`,
		"1(x999999999999999999)":             `the list has more than 65536 numbers`,
		strings.Repeat("1,", MaxHosts) + "1": `character 131073: the list has more than 65536 numbers`,
		strings.Repeat("1,", MaxList):        `at most 262144 are allowed`,
	} {
		if got, err := ExpandCounts(list); err == nil || !strings.Contains(err.Error(), want) || got != nil {
			t.Errorf("%.80q: %.80v, %v; want an error with %q", list, got, err, want)
		}
	}
}

// FuzzExpand: whatever the list, the result is within the limits, and each name is one that Expand itself accepts as a list.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"n[01-16,20],m3", "r[1-2]n[1-3]-ib,x", "n[1-3", "[1]", "a,,b", "n[9-10][0-65535]", "n[1-0]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		var hosts []string
		var err error
		testkit.AllocatesAtMost(t, 64<<20, func() { hosts, err = ExpandHosts(list) })
		if err != nil {
			if hosts != nil || len(err.Error()) > 600 {
				t.Fatalf("%d hosts and an error of %d bytes", len(hosts), len(err.Error()))
			}
			return
		}
		if len(hosts) == 0 || len(hosts) > MaxHosts {
			t.Fatalf("%d hosts", len(hosts))
		}
		for _, host := range hosts[:min(len(hosts), 100)] {
			if again, err := ExpandHosts(host); err != nil || !slices.Equal(again, []string{host}) {
				t.Fatalf("%q: %q, %v", host, again, err)
			}
		}
	})
}

func FuzzExpandCounts(f *testing.F) {
	for _, seed := range []string{"4(x2),3", "1", "1(x", "4(x65536)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		counts, err := ExpandCounts(list)
		if (err == nil) != (len(counts) > 0) || len(counts) > MaxHosts || slices.ContainsFunc(counts, func(n int) bool { return n < 0 }) {
			t.Fatalf("%d counts, %v", len(counts), err)
		}
	})
}
