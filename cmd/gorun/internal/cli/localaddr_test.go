package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestLocalAddr(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.0/8": "127.0.0.1", "node7": "node7", "203.0.113.7": "203.0.113.7", "[fd00::7]": "fd00::7", // not of this machine, and told as they are
	} {
		o, _, err := parse(t, "--nnodes=2", "--node-rank=1", "--master-addr=node0", "--local-addr="+text, "x")
		if err != nil || o.localAddr != want || o.node().Reach() != want {
			t.Errorf("%s: got %q, %v, want %q", text, o.localAddr, err, want)
		}
	}
	for text, want := range map[string]string{
		"203.0.113.0/24": "--local-addr=203.0.113.0/24: 203.0.113.0/24 contains no address of this machine; this machine has ",
		"10.1/16":        `--local-addr=10.1/16: "10.1/16" is not a prefix such as 10.1.0.0/16; this machine has `,
	} {
		if _, _, err := parse(t, "--local-addr="+text, "x"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// Workers are told the address that was given, whether it is this machine's or not, and nothing that an outer gorun was told.
func TestWorkersAreToldTheLocalAddr(t *testing.T) {
	for _, c := range []struct {
		localAddr string
		nnodes    int
		want      []string
	}{
		{"127.0.0.1", 2, []string{"A=b", "GORUN_COMM_ADDR=127.0.0.1"}},
		{"localhost", 2, []string{"A=b", "GORUN_COMM_ADDR=localhost"}},
		{"203.0.113.7", 2, []string{"A=b", "GORUN_COMM_ADDR=203.0.113.7"}},
		{"", 2, []string{"A=b"}},
		{"127.0.0.1", 1, []string{"A=b"}},
	} {
		o := &options{localAddr: c.localAddr, nnodes: c.nnodes}
		got := o.withCommAddr([]string{"A=b", "GORUN_COMM_ADDR=eth7"})
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}
