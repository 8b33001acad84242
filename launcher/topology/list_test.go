package topology

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseList(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []int
	}{
		{"", nil},
		{"0", []int{0}},
		{"0-3,8,10-11", []int{0, 1, 2, 3, 8, 10, 11}},
		{"5-5,6", []int{5, 6}},
		{"65535", []int{65535}},
	} {
		if got, err := ParseList(c.in); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q is %v, %v; want %v", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{" ", "a", "-", "1-", "-1", "+1", "1_0", "0x1", "3-1", "1,1", "1,0", "0-3,3", "1,", ",1", "65536", "0-65536", "0-3:1/2", "1-2-3", "0\n", "٣"} {
		if got, err := ParseList(in); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is %v, error %v; want an error of one line", in, got, err)
		}
	}
}

func TestFormatList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfDistinct(rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 65535)), rapid.ID[int]).Draw(t, "list")
		slices.Sort(list)
		s := FormatList(list)
		if again, err := ParseList(s); err != nil || !slices.Equal(again, list) {
			t.Fatalf("%v is %q, which is %v, %v", list, s, again, err)
		}
	})
}

func FuzzParseList(f *testing.F) {
	for _, s := range []string{"", "0", "0-3,8,10-11", "1,1", "0-65535", "-", "0-1:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := ParseList(s)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if again, err := ParseList(FormatList(list)); err != nil || !slices.Equal(again, list) {
			t.Errorf("%q is %v; again %v, %v", s, list, again, err)
		}
	})
}
