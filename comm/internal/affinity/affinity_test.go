package affinity

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "5,2": {5, 2}, "65535": {65535}} {
		if got, err := parse(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v", list, got, err)
		}
	}
}

func TestBadShares(t *testing.T) {
	for _, share := range []string{"0", "/", "0/", "/0", "a/0", "0/0-", "3-1/0", "0/65536", "0/-1", "0/0/0", strings.Repeat("0-65535,", 100) + "0/0"} {
		err := Bind(share)
		if err == nil || !strings.HasPrefix(err.Error(), `GORUN_CPUS="`) || !strings.HasSuffix(err.Error(), "want two lists of processors, such as 0-3,8/0-15") || len(err.Error()) > 200 {
			t.Errorf("%.20s: got %v", share, err)
		}
	}
	if err := Bind(""); err != nil {
		t.Error(err)
	}
}
