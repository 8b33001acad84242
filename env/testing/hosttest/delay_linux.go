package hosttest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

const (
	longestFrame = 1514    // of Ethernet, with a packet of 1500 bytes
	mostDelayed  = 1 << 14 // frames on their way in one direction; more are lost
)

// Delay gives host i another link, on which a frame takes the time d in each direction. A limit of the old link is gone: call Limit after Delay.
// Each frame passes through this process, which costs about as much as a system call or two.
func (w *Network) Delay(i int, d time.Duration) {
	w.t.Helper()
	h := w.hosts[i]
	h.run(w.t, "ip link del eth0") // and with it its other end
	there := h.openTAP(w.t, "eth0")
	h.run(w.t, fmt.Sprintf("ip addr add %s/24 dev eth0 && ip link set eth0 up", h.Addr))
	here := w.bridge.openTAP(w.t, link(i))
	w.bridge.run(w.t, fmt.Sprintf("ip link set %s master bridge up", link(i)))
	go delay(there, here, d)
	go delay(here, there, d)
}

// openTAP makes an Ethernet device. To read the returned file is to receive frames that are sent on the device, and to write to it is to send
// frames to the device. The device disappears when the file is closed.
func (h *Host) openTAP(t testing.TB, name string) *os.File {
	t.Helper()
	var fd int
	var err error
	h.Do(func() {
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return
		}
		var request *unix.Ifreq
		if request, err = unix.NewIfreq(name); err == nil {
			request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
		}
		if err != nil {
			_ = unix.Close(fd) // nothing was written
		}
	})
	if err != nil {
		testkit.Cannot(t, "a link with a delay cannot be made: %v", err)
	}
	f := os.NewFile(uintptr(fd), name)
	t.Cleanup(func() { _ = f.Close() }) // delay ends then
	return f
}

// A frame is to arrive at a time.
type frame struct {
	bytes []byte
	at    time.Time
}

// delay passes frames on, each after the time d, until one of the files is closed.
func delay(from, to *os.File, d time.Duration) {
	frames := make(chan frame, mostDelayed)
	go func() {
		defer close(frames)
		for {
			buf := make([]byte, longestFrame)
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			select {
			case frames <- frame{buf[:n], time.Now().Add(d)}:
			default: // it is lost
			}
		}
	}()
	for f := range frames {
		time.Sleep(time.Until(f.at))
		_, _ = to.Write(f.bytes) // a frame that a link cannot take is lost
	}
}
