package statuspage

import (
	"bufio"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// peerUser returns the user whose process has connected from an address of this machine to another one.
func peerUser(from, to netip.AddrPort) (uid int, err error) {
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		uid, found := findUser(bufio.NewScanner(file), from, to)
		_ = file.Close() // it was only read
		if found {
			return uid, nil
		}
	}
	return 0, errors.New("the kernel does not say whose connection it is")
}

const established = "01"

// findUser looks for a connection in the kernel's table (proc_pid_net(5)).
func findUser(lines *bufio.Scanner, from, to netip.AddrPort) (uid int, found bool) {
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 8 || f[3] != established || kernelAddr(f[1]) != unmap(from) || kernelAddr(f[2]) != unmap(to) {
			continue
		}
		uid, err := strconv.Atoi(f[7])
		return uid, err == nil
	}
	return 0, false
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// kernelAddr reads an address of the table: words of 32 bits in the machine's order, then the port. All of Linux' machines that gorun
// is built for are little-endian.
func kernelAddr(text string) netip.AddrPort {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	addr, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number))
}
