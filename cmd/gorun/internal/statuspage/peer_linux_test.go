package statuspage

import (
	"bufio"
	"net/netip"
	"strings"
	"testing"
)

const kernelTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:C000 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2 1
   2: 0100007F:1F90 0100007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 3 1
   3: 0100007F:C001 0100007F:1F90 06 00000000:00000000 00:00000000 00000000  1001        0 4 1
   4: 0000000000000000FFFF00000100007F:C002 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1002        0 5 1
   5: 00000000000000000000000001000000:C003 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000  1003        0 6 1
`

// TestFindUser: the end of the client counts, not that of the server, and only while it is connected.
func TestFindUser(t *testing.T) {
	for _, c := range []struct {
		from, to string
		uid      int
		found    bool
	}{
		{"127.0.0.1:49152", "127.0.0.1:8080", 1000, true},
		{"127.0.0.1:49153", "127.0.0.1:8080", 0, false},
		{"127.0.0.1:49154", "127.0.0.1:8080", 1002, true},
		{"[::1]:49155", "[::1]:8080", 1003, true},
		{"127.0.0.2:49152", "127.0.0.1:8080", 0, false},
		{"127.0.0.1:49152", "127.0.0.1:8081", 0, false},
	} {
		uid, found := findUser(bufio.NewScanner(strings.NewReader(kernelTable)), netip.MustParseAddrPort(c.from), netip.MustParseAddrPort(c.to))
		if uid != c.uid || found != c.found {
			t.Errorf("%s: user %d, %t, want %d, %t", c.from, uid, found, c.uid, c.found)
		}
	}
}

// FuzzFindUser: no table makes it fail.
func FuzzFindUser(f *testing.F) {
	f.Add(kernelTable)
	f.Fuzz(func(_ *testing.T, table string) {
		_, _ = findUser(bufio.NewScanner(strings.NewReader(table)), netip.MustParseAddrPort("127.0.0.1:49152"), netip.MustParseAddrPort("127.0.0.1:8080"))
	})
}
