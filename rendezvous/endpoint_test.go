package rendezvous

import (
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

func TestParseEndpoint(t *testing.T) {
	long := strings.Repeat("a.", 126) + "a"
	for text, want := range map[string]string{
		"node1":                     "node1:29400",
		"node1:1":                   "node1:1",
		" node1:65535 ":             "node1:65535",
		"Node-1.Example.COM:80":     "node-1.example.com:80",
		"node1.example.com.:80":     "node1.example.com.:80",
		"my_service:80":             "my_service:80",
		"10.0.0.1":                  "10.0.0.1:29400",
		"10.0.0.1:80":               "10.0.0.1:80",
		"1and1.com":                 "1and1.com:29400",
		"[::1]":                     "[::1]:29400",
		"[2001:DB8:0::1]:80":        "[2001:db8::1]:80",
		"[fe80::1%eth0]:80":         "[fe80::1%eth0]:80",
		"[::ffff:10.0.0.1]:80":      "10.0.0.1:80",
		long:                        long + ":29400",
		"localhost:0":               `endpoint "localhost:0": port "0": want a number from 1 to 65535`,
		"h:65536":                   `endpoint "h:65536": port "65536": want a number from 1 to 65535`,
		"h:":                        `endpoint "h:": port "": want a number from 1 to 65535`,
		"h:+80":                     `endpoint "h:+80": port "+80": want a number from 1 to 65535`,
		"h:80/path":                 `endpoint "h:80/path": port "80/path": want a number from 1 to 65535`,
		"":                          `endpoint "": the host is missing: want host or host:port`,
		":80":                       `endpoint ":80": the host is missing: want host or host:port`,
		"http://h:80":               `endpoint "http://h:80": want a host and a port without a scheme, as in "h:80"`,
		"::1":                       `endpoint "::1": want an IPv6 address in brackets, as in [::1]`,
		"::1:29400":                 `endpoint "::1:29400": want an IPv6 address in brackets, as in [::1]:29400`,
		"a:b:c":                     `endpoint "a:b:c": want host:port, and an IPv6 address in brackets`,
		"[::1":                      `endpoint "[::1": want an IPv6 address in the brackets, as in [2001:db8::1]:29400`,
		"[node1]:80":                `endpoint "[node1]:80": want an IPv6 address in the brackets, as in [2001:db8::1]:29400`,
		"[10.0.0.1]:80":             `endpoint "[10.0.0.1]:80": want an IPv6 address in the brackets, as in [2001:db8::1]:29400`,
		"[::1]80":                   `endpoint "[::1]80": want nothing or a colon and a port after the brackets, not "80"`,
		"0.0.0.0:80":                `endpoint "0.0.0.0:80": it means all addresses: want one that other nodes can connect to`,
		"[::]:80":                   `endpoint "[::]:80": it means all addresses: want one that other nodes can connect to`,
		"224.0.0.1":                 `endpoint "224.0.0.1": it is a multicast address: want one that other nodes can connect to`,
		"10.0.0.300":                `endpoint "10.0.0.300": "10.0.0.300" is neither an IPv4 address nor a host name`,
		"29400":                     `endpoint "29400": "29400" is neither an IPv4 address nor a host name`,
		"node 1":                    `endpoint "node 1": "node 1" is not a host name: want letters, digits, hyphens and dots`,
		"-h":                        `endpoint "-h": "-h" is not a host name: want letters, digits, hyphens and dots`,
		"a..b":                      `endpoint "a..b": "a..b" is not a host name: want letters, digits, hyphens and dots`,
		"nöde":                      `endpoint "nöde": "nöde" is not a host name: want letters, digits, hyphens and dots`,
		strings.Repeat("a", 64):     `endpoint "` + strings.Repeat("a", 64) + `": "` + strings.Repeat("a", 64) + `" is not a host name: want letters, digits, hyphens and dots`,
		"a" + long + "." + long:     `endpoint "a` + long + "." + long + `": the host name has 508 bytes: want at most 253`,
		"user@node1:80":             `endpoint "user@node1:80": "user@node1" is not a host name: want letters, digits, hyphens and dots`,
		"node1:80,node2:80":         `endpoint "node1:80,node2:80": want host:port, and an IPv6 address in brackets`,
		"fe80::1%a\nb":              `endpoint "fe80::1%a\nb": want host:port, and an IPv6 address in brackets`,
		"[fe80::1%a\nb]":            `endpoint "[fe80::1%a\nb]": want an IPv6 address in the brackets, as in [2001:db8::1]:29400`,
		"[fe80::1%eth0]:80 \n more": `endpoint "[fe80::1%eth0]:80 \n more": port "80 \n more": want a number from 1 to 65535`,
	} {
		e, err := ParseEndpoint(text, EmbeddedPort)
		got := e.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestParseEndpoints(t *testing.T) {
	got, err := ParseEndpoints("h1, h2:80,[::1]", EtcdPort)
	want := []Endpoint{{"h1", 2379}, {"h2", 80}, {"::1", 2379}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for list, want := range map[string]string{
		"":          `endpoint "": the host is missing: want host or host:port`,
		"h1,":       `endpoint 2 of "h1," is empty`,
		"h1,,h3":    `endpoint 2 of "h1,,h3" is empty`,
		"h1,H1:80":  `endpoint h1:80 occurs twice in "h1,H1:80"`,
		"h1,h2:x":   `endpoint "h2:x": port "x": want a number from 1 to 65535`,
		"h1;h2:123": `endpoint "h1;h2:123": "h1;h2" is not a host name: want letters, digits, hyphens and dots`,
	} {
		if got, err := ParseEndpoints(list, 80); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, %v; want %s", list, got, err, want)
		}
	}
}

// FuzzParseEndpoint: what is taken has one form, which is read as the same again; what is refused is refused in one line.
func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{"h:1", "[::1]:2", "[fe80::1%a]", "1.2.3.4", "::ffff:1.2.3.4", "h.", "a_b", "[::ffff:0:0]", "http://", "http://\x1b", "fe80::1%a\nb", "[::1%\x00]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var e Endpoint
		var err error
		testkit.AllocatesAtMost(t, 64*len(text), func() { e, err = ParseEndpoint(text, EtcdPort) })
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n\x00\x1b") {
				t.Errorf("%q: %q", text, err)
			}
			return
		}
		if e.Port < 1 || e.Port > 65535 || len(e.Host) > len(text)+1 && !strings.Contains(e.Host, ":") {
			t.Errorf("%q is %#v", text, e)
		}
		if again, err := ParseEndpoint(e.String(), EmbeddedPort); err != nil || again != e {
			t.Errorf("%q is %v, which is read as %v, %v", text, e, again, err)
		}
	})
}
