package comm

import (
	"strings"
	"testing"
)

// TestFarMachinesGetFewSteps: comm finds out that machines are far away from each other, and then uses algorithms with few steps. It does not
// do so in a group if all that it knows is that every rank of the group is far away from rank 0. Links that the user has set overrule that.
func TestFarMachinesGetFewSteps(t *testing.T) {
	const size = 4
	for name, c := range map[string]struct {
		network, environ string
		want             string // that Explain says
		has              string // what else it says
		others           string // that it says of the group of the others than rank 0; empty: does not matter
	}{
		"far":              {network: "far", want: "pairwise", others: "doubling"},
		"far, with links":  {network: "far", environ: "GORUN_COMM_LINKS=" + linked["narrow, scattered"], want: "bidirectional", others: "bidirectional"},
		"far, with a rate": {network: "far", environ: "GORUN_COMM_LINKS=network=rate:4Gbit", want: "pairwise", has: "ms,overhead:4us,wakeup:5us,rate:4Gbit"},
		"near":             {network: "mixed", want: "doubling"},
		"on one machine":   {network: "tcp", want: "doubling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newTestAgent(t, c.network, size, c.environ)
			a.join()
			explains := func(want string, group ...string) {
				a.begun(append([]string{"explain", "all_reduce", "64"}, group...)...)
				for rank, r := range a.results() {
					ways := picked(r.Text)
					if isMember := r.Text != ""; !strings.Contains(r.Text, c.has) || r.Error != "" || isMember && ways != want && !strings.HasSuffix(ways, " "+want) {
						t.Errorf("rank %d says\n%s%s\nwant %s", rank, r.Text, r.Error, want)
					}
				}
			}
			explains(c.want)
			if c.others != "" {
				explains(c.others, "1", "2", "3")
			}
		})
	}
}

// TestSlowLinks: what each rank has been told of its machine's link reaches all ranks, and decides which algorithm a long all-reduce uses. A group whose
// links are all the same uses the default one.
func TestSlowLinks(t *testing.T) {
	t.Parallel()
	a := newTestAgentWith(t, "hosts", 5, func(rank int) []string {
		rate := []string{"", "", "network=rate:100Mbit", "network=rate:5Gbit,latency:1ms", ""}[rank] // rank 0 says nothing
		return []string{"GORUN_COMM_LINKS=" + rate}
	})
	a.join()
	for _, c := range []struct{ group, has string }{
		{"", "(by what the links predict, 5 ranks, 4194304 bytes)"},
		{"", "> pipeline"},
		{"", "network=latency:20us,overhead:4us,wakeup:5us,rate:10Gbit,copy:80Gbit; rate:0.1Gbit for the machine of rank 2; rate:5Gbit for the machine of rank 3."},
		{"4 1 2", "rate:10Gbit,copy:80Gbit; rate:0.1Gbit for the machine of rank 2."},
		{"3 2", "rate:5Gbit,copy:80Gbit; rate:0.1Gbit for the machine of rank 1."},
		{"4 1 0", "(built in, 3 ranks, 4194304 bytes)"},
		{"4 1 0", "rate:10Gbit,copy:80Gbit.\n"},
	} {
		a.begun(append([]string{"explain", "all_reduce", "4194304"}, strings.Fields(c.group)...)...)
		for rank, r := range a.results() {
			text := strings.Replace(r.Text, ">    any  pipeline", "> pipeline", 1)
			if r.Error != "" || text != "" && !strings.Contains(text, c.has) {
				t.Errorf("rank %d says of %q\n%s%s\nwant %s", rank, c.group, r.Text, r.Error, c.has)
			}
		}
	}
	for rank, told := range []bool{2: false, 3: true, 4: false} {
		if got := strings.Contains(a.workers[rank].stderr.String(), "the links of rank 0 count"); got != told {
			t.Errorf("rank %d is told that other links count: %t", rank, got)
		}
	}
}
