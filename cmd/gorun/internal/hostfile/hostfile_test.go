package hostfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/manager"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []manager.Host
	}{
		{"Open MPI", "# the cluster\nn1 slots=8 max_slots=8 # fast\nme@n2 slots = 4\t// slow\n\n /* n3 slots=1\nn4 */ n5 max-slots=9 slots= 9\r\nn6\n", []manager.Host{
			{Name: "n1", Slots: 8}, {Name: "n2", User: "me", Slots: 4}, {Name: "n5", Slots: 9}, {Name: "n6"}}},
		{"MPICH", "n1:2 binding=user:0,1\nn2:4 user=me\nn3", []manager.Host{{Name: "n1", Slots: 2}, {Name: "n2", User: "me", Slots: 4}, {Name: "n3"}}},
		{"DeepSpeed and Horovod", "worker-1 slots=4\nworker-2 slots=4", []manager.Host{{Name: "worker-1", Slots: 4}, {Name: "worker-2", Slots: 4}}},
		{"ranges", "n[01-02]:8\nme@r[1-2]-ib slots=4", []manager.Host{{Name: "n01", Slots: 8}, {Name: "n02", Slots: 8}, {Name: "r1-ib", User: "me", Slots: 4}, {Name: "r2-ib", User: "me", Slots: 4}}},
		{"addresses", "10.0.0.[1-2]:3\n[2001:db8::1]:8\n[fe80::1%eth0] slots=2\nme@[::1]", []manager.Host{
			{Name: "10.0.0.1", Slots: 3}, {Name: "10.0.0.2", Slots: 3}, {Name: "2001:db8::1", Slots: 8}, {Name: "fe80::1%eth0", Slots: 2}, {Name: "::1", User: "me"}}},
		{"users", "me@example.com@n1\nn2 username=DOMAIN\\me\n", []manager.Host{{Name: "n1", User: "me@example.com"}, {Name: "n2", User: `DOMAIN\me`}}},
		{"comments", "/**/n1/*#*//*//\n*/\n//\n#\nn2#:8\nn3//:8", []manager.Host{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}},
	} {
		got, err := Parse("hosts", strings.NewReader(c.text))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

// TestParseFileToCopy: the hostfile of docs/clusters means what it says.
func TestParseFileToCopy(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/clusters/hosts")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("hosts", bytes.NewReader(text))
	want := []manager.Host{{Name: "node01", Slots: 8}, {Name: "node02", Slots: 8}, {Name: "node03", Slots: 8}, {Name: "node04", User: "me", Slots: 4}, {Name: "node05"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "hosts: the file names no host"},
		{"# n1\n", "hosts: the file names no host"},
		{"n1\nn1\n", "hosts:2: host n1 is already in line 1"},
		{"n1\n/*\n\n*/\nN1.\n", "hosts:5: host N1. is already in line 1"},
		{"[::1]\n[0:0::1]", "hosts:2: host 0:0::1 is already in line 1"},
		{"n[1-3]\nme@n2:8", "hosts:2: host n2 is already in line 1"},
		{"n[1-2,2]", "hosts:1: host n2 is there twice"},
		{"n1\nn2 /* slots=8\nn3", `hosts:2: "/*" without "*/"`},
		{"n1\n\n/*", `hosts:3: "/*" without "*/"`},
		{"n1\nn2 /* slots=x\nn1 */ n1\n", `hosts:3: host n1 is already in line 1`},
		{"x y", `hosts:1: "y": want slots=N, max_slots=N, user=NAME or binding=NAME`},
		{"x cores=8", `"cores=8": want slots=N`},
		{"x slots", `"slots": want a number of slots from 1 to 65536`},
		{"x slots=", `"slots=": want a number of slots from 1 to 65536`},
		{"x slots=0", `"slots=0": want a number`},
		{"x slots=-1", `"slots=-1": want a number`},
		{"x slots=65537", `want a number`},
		{"x slots=99999999999999999999", `want a number`},
		{"x:0", `"x:0": behind the colon: want a number of slots from 1 to 65536`},
		{"x:", `"x:": behind the colon: want a number`},
		{"x:22:8", `"x:22" is neither a host nor an IPv6 address in brackets`},
		{"x:8 slots=8", "the number of slots is there twice"},
		{"x max_slots=8", "max_slots without slots"},
		{"x slots=8 max_slots=4", "slots=8 is more than max_slots=4"},
		{"me@x user=you", "the user is there twice"},
		{"@x", `"@x": "" cannot be the name of a user`},
		{"x user=", `"user=": "" cannot be the name of a user`},
		{"-l@x", `"-l" cannot be the name of a user`},
		{"x user=a;b", `"a;b" cannot be the name of a user`},
		{"-oProxyCommand", `begins with a hyphen`},
		{"n1\nme@-x", `hosts:2: "-x", character 1: the name "-x" begins with a hyphen`},
		{"n1,n2", `hosts:1: "n1,n2": want one host in a line`},
		{"n[1-x]", `hosts:1: "n[1-x]", character 3: "1-x" in brackets is not a number`},
		{"n[1-2", `"n[1-2", character 2: "[" without "]"`},
		{":8", `character 1: a host has no name`},
		{"2001:db8::1", `"2001:db8:" is neither a host nor an IPv6 address in brackets`},
		{"2001:db8::1:8", `"2001:db8::1": want an IPv6 address in brackets, as in [2001:db8::1]`},
		{"[2001:db8::1", `"[2001:db8:" is neither a host`},
		{"[2001:db8::g]", `"[2001:db8::g]" is neither a host nor an IPv6 address in brackets`},
		{"[fe80::1%e;0]", `';' cannot be in the name of a host`},
		{"n[1-65536]\nm", "hosts:2: the list has more than 65536 hosts"},
		{strings.Repeat("n", manager.MaxFile+1), "hosts: the file is longer than 8388608 bytes"},
	} {
		got, err := Parse("hosts", strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
			t.Errorf("%.80q: %.80v, %v; want an error with %q", c.text, got, err, c.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "hosts:") {
			t.Errorf("%.80q: %v", c.text, err)
		}
	}
	broken := errors.New("the disk has gone")
	if _, err := Parse("hosts", iotest.ErrReader(broken)); !errors.Is(err, broken) || err.Error() != "cannot read hosts: the disk has gone" {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

func TestParseList(t *testing.T) {
	for text, want := range map[string][]manager.Host{
		"a:8,b:8,n[01-02]:4":        {{Name: "a", Slots: 8}, {Name: "b", Slots: 8}, {Name: "n01", Slots: 4}, {Name: "n02", Slots: 4}},
		"a":                         {{Name: "a"}},
		"me@n[1,3-4],[2001:db8::1]": {{Name: "n1", User: "me"}, {Name: "n3", User: "me"}, {Name: "n4", User: "me"}, {Name: "2001:db8::1"}},
		"[::1]:2,[::2]:3":           {{Name: "::1", Slots: 2}, {Name: "::2", Slots: 3}},
	} {
		if got, err := ParseList(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                        `item 1: "", character 1: a host has no name`,
		"a,":                      `item 2: "", character 1: a host has no name`,
		"a:8, b:8":                `item 2: " b", character 1: ' ' cannot be in the name of a host`,
		"a:8,b:x":                 `item 2: "b:x": behind the colon: want a number`,
		"a:8,n[1-3]:8,n3":         `item 3: host n3 is already in item 2`,
		"n[1-2,4":                 `item 1: "n[1-2,4", character 2: "[" without "]"`,
		"n1],a":                   `item 1: "n1]", character 3: "]" without "["`,
		"n[1-40000],m[1-40000]":   `item 2: the list has more than 65536 hosts`,
		"a slots=8":               `' ' cannot be in the name of a host`,
		strings.Repeat("a", 3e5):  `the list of hosts has 300000 bytes; at most 262144 are allowed`,
		strings.Repeat("a,", 9e4): `item 2: host a is already in item 1`,
	} {
		if got, err := ParseList(text); err == nil || !strings.Contains(err.Error(), want) || got != nil {
			t.Errorf("%.80s: %.80v, %v; want an error with %q", text, got, err, want)
		}
	}
}

// TestParseGenerated: a file means the hosts from which it was made, in whatever form each line is.
func TestParseGenerated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		var want []manager.Host
		for i := range rapid.IntRange(1, 8).Draw(t, "lines") {
			h := manager.Host{
				Name:  fmt.Sprintf("%s%d", rapid.StringMatching(`[a-z][a-z.-]{0,3}`).Draw(t, "name"), i),
				User:  rapid.SampledFrom([]string{"", "me"}).Draw(t, "user"),
				Slots: rapid.IntRange(0, manager.MaxSlots).Draw(t, "slots"),
			}
			want = append(want, h)
			before, behind := "", ""
			if h.User != "" && rapid.Bool().Draw(t, "user before") {
				before = h.User + "@"
			} else if h.User != "" {
				behind = " user=" + h.User
			}
			switch form := rapid.IntRange(0, 1).Draw(t, "form"); {
			case h.Slots > 0 && form == 0:
				behind = fmt.Sprintf(":%d", h.Slots) + behind
			case h.Slots > 0:
				behind += fmt.Sprintf(" slots=%d", h.Slots)
			}
			comment := rapid.SampledFrom([]string{"", " # x", "// x", "/*\n*/", "\n/**/"}).Draw(t, "comment")
			text.WriteString(before + h.Name + behind + comment + "\n")
		}
		if got, err := Parse("hosts", strings.NewReader(text.String())); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %v, %v; want %v", text.String(), got, err, want)
		}
	})
}

// check fails if hosts are not what Parse and the others promise.
func check(t *testing.T, hosts []manager.Host, err error) {
	t.Helper()
	if (err == nil) != (len(hosts) > 0) || len(hosts) > manager.MaxHosts {
		t.Fatalf("%d hosts, %v", len(hosts), err)
	}
	if err != nil && (len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n")) {
		t.Fatalf("the error is not one line: %q", err)
	}
	for _, h := range hosts {
		if h.Name == "" || h.Name[0] == '-' || strings.HasPrefix(h.User, "-") || h.Slots < 0 || h.Slots > manager.MaxSlots || strings.ContainsAny(h.Name+h.User, " \n\"'$;`") {
			t.Fatalf("%+v", h)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"n1 slots=8 max_slots=9\n# x\nme@n[01-02]:4 // x", "[::1]:8 user=me", "/* x */ a", "a\na", "n 8 m 8"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		hosts, err := Parse("hosts", strings.NewReader(text))
		check(t, hosts, err)
		hosts, err = ParseList(text)
		check(t, hosts, err)
	})
}
