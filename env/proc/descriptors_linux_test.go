package proc

import (
	"os"
	"syscall"
	"testing"
)

// TestOwn: the list says of which file a descriptor is, so that another file with that number is not taken for it.
func TestOwn(t *testing.T) {
	list := make([]Descriptor, 1024)
	KeepDescriptors(list)
	t.Cleanup(func() { KeepDescriptors(nil) })
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = reader.Close(), writer.Close() }()
	other, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	OwnConn(reader)
	fd := int(reader.Fd())
	if now, ok := entryOf(fd); !ok || list[fd] != now {
		t.Errorf("entry %v, and the file is %v", list[fd], now)
	}
	if err := syscall.Dup3(int(other.Fd()), fd, syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if now, ok := entryOf(fd); !ok || list[fd] == now {
		t.Errorf("entry %v after another file has the number", now)
	}
	Disown(fd)
	if list[fd] != (Descriptor{}) {
		t.Errorf("entry %v", list[fd])
	}
	Own(-1)
	Own(len(list))
	OwnConn(t)
}
