package launcher

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseStd(t *testing.T) {
	tests := []struct {
		in   string
		want StdMap
	}{
		{"0", StdMap{}},
		{"1", StdMap{Default: Stdout}},
		{"2", StdMap{Default: Stderr}},
		{"3", StdMap{Default: Both}},
		{"0:3", StdMap{Ranks: map[int]Std{0: Both}}},
		{"0:3,1:2", StdMap{Ranks: map[int]Std{0: Both, 1: Stderr}}},
		{"1023:1,10:0,007:2", StdMap{Ranks: map[int]Std{1023: Stdout, 10: None, 7: Stderr}}},
	}
	for _, tt := range tests {
		if got, err := ParseStd(tt.in); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("ParseStd(%q) = %+v, %v; want %+v", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{"", "4", "-1", "33", "both", ":", "0:", ":3", "0:4", "0:3,", ",0:3", "0:3,,1:2", "-1:3", "+1:3",
		"a:3", " 0:3", "0:3 ", "0:3,2", "0:3,0:3", "99999999999:1", "0:3:1", "0:3\n"} {
		if got, err := ParseStd(in); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("ParseStd(%q) = %+v, error %v; want a one-line error", in, got, err)
		}
	}
}

func TestStdMapFor(t *testing.T) {
	m, err := ParseStd("0:3,12:1")
	if err != nil {
		t.Fatal(err)
	}
	for rank, want := range map[int]Std{0: Both, 1: None, 12: Stdout, 1000: None} {
		if got := m.For(rank); got != want {
			t.Errorf("For(%d) = %d, want %d", rank, got, want)
		}
	}
	if got := (StdMap{Default: Stderr}).For(7); got != Stderr {
		t.Errorf("For(7) = %d, want the default", got)
	}
}

func FuzzParseStd(f *testing.F) {
	for _, s := range []string{"3", "0:3,1:2", "10:1", "0:", ",", "1:1,1:1", "\xff:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseStd(s)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: error of several lines: %q", s, err)
			}
			return
		}
		again, err := ParseStd(render(m))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%q is %+v; %q is %+v, %v", s, m, render(m), again, err)
		}
	})
}

// render is the inverse of ParseStd.
func render(m StdMap) string {
	if m.Ranks == nil {
		return fmt.Sprint(m.Default)
	}
	var items []string
	for rank, std := range m.Ranks {
		items = append(items, fmt.Sprintf("%d:%d", rank, std))
	}
	slices.Sort(items)
	return strings.Join(items, ",")
}
