package manager

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestHostsOfJob: the lists of PBS, LSF and Grid Engine, in a variable or in a file that it names.
func TestHostsOfJob(t *testing.T) {
	t.Chdir(t.TempDir())
	list := func(variable, text string) ([]Host, error) {
		value := "nodes"
		if variable == "LSB_MCPU_HOSTS" {
			value = text
		} else if err := os.WriteFile(value, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		hosts, found, said, err := HostsOfJob(lookupIn(map[string]string{variable: value}))
		if value != "" && (found != variable || said != value) {
			t.Errorf("%s=%s: found %s=%s", variable, value, found, said)
		}
		return hosts, err
	}
	for _, c := range []struct {
		variable, text string
		want           []Host
	}{
		{"PBS_NODEFILE", "n1.example.com\nn1.example.com\nn2.example.com\n", []Host{{"n1.example.com", "", 2}, {"n2.example.com", "", 1}}},
		{"PBS_NODEFILE", "n1\nn2\nn1\nn2", []Host{{"n1", "", 2}, {"n2", "", 2}}},
		{"LSB_MCPU_HOSTS", "n1 8 n2 4", []Host{{"n1", "", 8}, {"n2", "", 4}}},
		{"LSB_MCPU_HOSTS", " n1 8  n2 4 n1 2 ", []Host{{"n1", "", 10}, {"n2", "", 4}}},
		{"PE_HOSTFILE", "n1.x 4 all.q@n1.x UNDEFINED\nn2.x 2 all.q@n2.x <NULL>\nn1.x 1 long.q@n1.x 0,0:0,1\n", []Host{{"n1.x", "", 5}, {"n2.x", "", 2}}},
	} {
		if got, err := list(c.variable, c.text); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.variable, got, err, c.want)
		}
	}
	var many strings.Builder
	for i := range MaxHosts + 1 {
		fmt.Fprintf(&many, "n%d\n", i)
	}
	for _, c := range []struct {
		variable, text, want string
	}{
		{"PBS_NODEFILE", "\n\n", "nodes: the file names no host"},
		{"PBS_NODEFILE", "n1\nn2 8\n", `nodes:2: "n2 8": want one host in a line`},
		{"PBS_NODEFILE", "n1\n-x\n", `nodes:2: "-x": the name "-x" begins with a hyphen`},
		{"PBS_NODEFILE", "n[1-2]\n", `nodes:1: "n[1-2]": '[' cannot be in the name of a host`},
		{"LSB_DJOB_RANKFILE", many.String(), `nodes:65537: the list has more than 65536 hosts`},
		{"LSB_MCPU_HOSTS", " ", `" ": want a number of slots behind every host`},
		{"LSB_MCPU_HOSTS", "n1", `"n1": want a number of slots behind every host`},
		{"LSB_MCPU_HOSTS", "n1 8 n2", `want a number of slots behind every host, as in "n1 8 n2 8"`},
		{"LSB_MCPU_HOSTS", "n1 x", `"n1 x": want a number of slots from 1 to 65536`},
		{"LSB_MCPU_HOSTS", "n1 65536 n1 1", `host n1 has more than 65536 slots`},
		{"LSB_MCPU_HOSTS", strings.Repeat(" ", MaxFile+1), `longer than 8388608 bytes`},
		{"PE_HOSTFILE", "n1 4 q\nn2\n", `nodes:2: "n2": want host, slots and queue`},
		{"PE_HOSTFILE", "n1 q 4", `nodes:1: "n1 q": want a number of slots`},
		{"PE_HOSTFILE", "", "nodes: the file names no host"},
	} {
		if got, err := list(c.variable, c.text); err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
			t.Errorf("%s: %.80q: %.80v, %v; want an error with %q", c.variable, c.text, got, err, c.want)
		}
	}
	if hosts, variable, _, err := HostsOfJob(lookupIn(map[string]string{"PBS_NODEFILE": ""})); hosts != nil || variable != "" || err != nil {
		t.Errorf("no manager: %v, %s, %v", hosts, variable, err)
	}
	for name, want := range map[string]string{"none": "cannot read it: no such file or directory", ".": "cannot read it: is a directory"} {
		if _, _, _, err := HostsOfJob(lookupIn(map[string]string{"PE_HOSTFILE": name})); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// FuzzHostsOfJob: hosts that programs may get, or an error in one line.
func FuzzHostsOfJob(f *testing.F) {
	for _, seed := range []string{"n1\nn1\n", "n1 8 n2 4", "n1 4 q@n1 <NULL>", "-x", "n1 65536 n1 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range managers {
			for _, l := range m.lists {
				hosts, err := l.parse("nodes", text)
				if (err == nil) != (len(hosts) > 0) || len(hosts) > MaxHosts || err != nil && (len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n")) {
					t.Fatalf("%s: %d hosts, %v", l.variable, len(hosts), err)
				}
				for _, h := range hosts {
					if CheckHostName(h.Name) != nil || h.Slots < 1 || h.Slots > MaxSlots {
						t.Fatalf("%s: %+v", l.variable, h)
					}
				}
			}
		}
	})
}
