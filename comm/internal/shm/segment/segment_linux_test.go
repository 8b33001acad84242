package segment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that has a segment cannot make it shorter. A file that could be made shorter is not taken for a segment.
func TestSegmentsKeepTheirSize(t *testing.T) {
	s, err := Create(5000)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(s.fd, 100); err == nil {
		t.Error("a segment has been cut")
	}
	if _, err := Open(dup(t, s.fd), 6000); err == nil || !strings.Contains(err.Error(), "has 5000 bytes: want 6000") {
		t.Errorf("a segment that is too short: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	loose, err := unix.MemfdCreate("loose", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(loose, 0); err == nil || !strings.Contains(err.Error(), "its size could be changed") {
		t.Errorf("a file that can be cut: %v", err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dup(t, int(file.Fd())), 0); err == nil {
		t.Error("a plain file has been taken for a segment")
	}
	_ = file.Close()
}

func dup(t testing.TB, fd int) int {
	t.Helper()
	fd, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}
