package acceptor

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/shm/stream"
	"github.com/gorun/gorun/env/testing/testkit"
)

// openFiles counts the descriptors that this process has of the memfd with that name.
func openFiles(t *testing.T, name string) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		testkit.Cannot(t, "there is no /proc")
	}
	for _, fd := range list {
		if link, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); err == nil && strings.HasPrefix(link, "/memfd:"+name) {
			n++
		}
	}
	return n
}

// Whatever is wrong with a message, no descriptor that came with it stays open.
func TestReceivedDescriptorsAreClosed(t *testing.T) {
	const size = 5000
	size64 := binary.LittleEndian.AppendUint64(nil, size)
	for what, c := range map[string]struct {
		data   []byte
		copies int
		loose  bool // the file's size can be changed
	}{
		"two descriptors":     {size64, 2, false},
		"many descriptors":    {size64, 50, false},
		"a short message":     {size64[:4], 1, false},
		"no size":             {make([]byte, 8), 1, false},
		"a negative size":     {binary.LittleEndian.AppendUint64(nil, 1<<63), 1, false},
		"another size":        {binary.LittleEndian.AppendUint64(nil, size+1), 1, false},
		"a vast size":         {binary.LittleEndian.AppendUint64(nil, 1<<62), 1, false},
		"a file that shrinks": {size64, 1, true},
	} {
		t.Run(what, func(t *testing.T) {
			name := fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano())
			fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
			if err == nil {
				err = unix.Ftruncate(fd, size)
			}
			if err == nil && !c.loose {
				_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@gorun-" + name})
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			mine, err := net.Dial("unix", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer mine.Close()
			theirs, err := ln.AcceptUnix()
			if err != nil {
				t.Fatal(err)
			}
			fds := make([]int, c.copies)
			for i := range fds {
				fds[i] = fd
			}
			if _, _, err := theirs.WriteMsgUnix(c.data, unix.UnixRights(fds...), nil); err != nil {
				t.Fatal(err)
			}
			if err := theirs.Close(); err != nil {
				t.Error(err)
			}
			if got, err := receiveSegment(mine.(*net.UnixConn)); err == nil {
				t.Errorf("it is taken, as %d bytes", len(got.Bytes()))
				_ = got.Close()
			}
			if n := openFiles(t, name); n != 1 {
				t.Errorf("%d descriptors are open, want the one that was sent", n)
			}
		})
	}
}

// A stream that is not wanted leaves no memory behind, at neither end.
func TestARefusedStreamLeavesNothing(t *testing.T) {
	d := listen(t)
	var asked atomic.Int32
	d.Serve(Self{World: 1, Rank: 1, Ranks: 2, Here: 2}, admitsNobody{&asked})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if conn, err := (Self{World: 1, Rank: 0, Ranks: 2, Here: 2}).Dial(ctx, d.Address(), secret, 1); err == nil {
		t.Error("a stream that is not wanted is opened")
		_ = conn.Close()
	}
	d.StopServing()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked about %d streams, want 1", n)
	}
	if n := openFiles(t, stream.Name); n != 0 {
		t.Errorf("%d descriptors of streams are open", n)
	}
}
