package attack

import (
	"bytes"
	"encoding/binary"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// From linux/sock_diag.h, inet_diag.h and unix_diag.h.
const (
	netlinkSockDiag  = 4
	sockDiagByFamily = 20
	stateListen      = 10
	unixShowName     = 1
	inetRequest      = 56 // bytes of an inet_diag_req_v2
	inetAnswer       = 72 // of an inet_diag_msg
	unixRequest      = 24 // of a unix_diag_req
	unixAnswer       = 16 // of a unix_diag_msg, before its attributes
)

// A listener is a socket that listens, with its inode.
type listener struct {
	inode uint32
	port  Port
}

// listeners asks the kernel for the listeners of an address family. Reading them from /proc/net would take seconds, because it also
// lists every connection of the flood.
func listeners(family byte) (list []listener) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, netlinkSockDiag)
	if err != nil {
		return nil
	}
	defer func() { _ = syscall.Close(fd) }()
	if syscall.Sendto(fd, request(family), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}) != nil {
		return nil
	}
	for b := make([]byte, 1<<16); ; {
		n, _, err := syscall.Recvfrom(fd, b, 0)
		if err != nil {
			return list
		}
		messages, err := syscall.ParseNetlinkMessage(b[:n])
		if err != nil {
			return list
		}
		for _, m := range messages {
			if m.Header.Type != sockDiagByFamily {
				return list // the end, or an error
			}
			l := inet(m.Data)
			if family == syscall.AF_UNIX {
				l = unix(m.Data)
			}
			if l.port.Address != "" {
				list = append(list, l)
			}
		}
	}
}

func request(family byte) []byte {
	size := inetRequest
	if family == syscall.AF_UNIX {
		size = unixRequest
	}
	b := make([]byte, syscall.NLMSG_HDRLEN+size)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(b[6:], syscall.NLM_F_REQUEST|syscall.NLM_F_DUMP)
	body := b[syscall.NLMSG_HDRLEN:]
	body[0] = family
	binary.NativeEndian.PutUint32(body[4:], 1<<stateListen)
	if family == syscall.AF_UNIX {
		binary.NativeEndian.PutUint32(body[12:], unixShowName)
	} else {
		body[1] = syscall.IPPROTO_TCP
	}
	return b
}

func inet(b []byte) (l listener) {
	if len(b) < inetAnswer {
		return l
	}
	ip := net.IP(b[8:12])
	if b[0] == syscall.AF_INET6 {
		ip = b[8:24]
	}
	if ip.IsUnspecified() {
		ip = net.IPv4(127, 0, 0, 1)
	}
	port := strconv.Itoa(int(binary.BigEndian.Uint16(b[4:])))
	return listener{binary.NativeEndian.Uint32(b[68:]), Port{"tcp", net.JoinHostPort(ip.String(), port)}}
}

func unix(b []byte) (l listener) {
	if len(b) < unixAnswer+4 {
		return l
	}
	size := int(binary.NativeEndian.Uint16(b[unixAnswer:]))
	if size < 4 || unixAnswer+size > len(b) || b[unixAnswer+2] != 0 || b[unixAnswer+3] != 0 { // the first attribute, of type 0, is the name
		return l
	}
	name := string(bytes.TrimRight(b[unixAnswer+4:unixAnswer+size], "\x00"))
	if strings.HasPrefix(name, "\x00") {
		name = "@" + name[1:]
	}
	return listener{binary.NativeEndian.Uint32(b[4:]), Port{"unix", name}}
}
