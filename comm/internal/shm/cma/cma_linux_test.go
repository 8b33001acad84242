package cma

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestMain is also a child that says who it is and where some of its memory is, and keeps that until its input ends.
func TestMain(m *testing.M) {
	if os.Getenv("CMA_CHILD") == "" {
		os.Exit(m.Run())
	}
	mem, nonce := pattern(600_000), new(uint64)
	p := Self(nonce)
	fmt.Println(p.PID, p.NonceAt, p.Nonce, uintptr(unsafe.Pointer(&mem[0])))
	_, _ = os.Stdin.Read(make([]byte, 1))
	runtime.KeepAlive(mem)
	runtime.KeepAlive(nonce)
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 >> 3)
	}
	return b
}

func TestReadOfAnotherProcess(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "CMA_CHILD=1")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var p Process
	var at uint64
	if _, err := fmt.Fscan(out, &p.PID, &p.NonceAt, &p.Nonce, &at); err != nil {
		t.Fatal(err)
	}
	other, nowhere, want := p, p, pattern(600_000)
	other.Nonce++
	nowhere.NonceAt = 16
	const n = 500_000
	for _, c := range []struct {
		name string
		p    Process
		n    int
		from uint64
		err  error
	}{
		{"memory", p, n, at + 12_345, nil},
		{"nothing, to see whether it can be read", p, 0, 0, nil},
		{"memory that is not there", p, n, 16, unix.EFAULT},
		{"another process", other, n, at + 12_345, errOther},
		{"another process without the address", nowhere, n, at + 12_345, unix.EFAULT},
	} {
		got := make([]byte, c.n)
		err := c.p.Read(got, c.from)
		if !errors.Is(err, c.err) || err == nil && !bytes.Equal(got, want[12_345:][:c.n]) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
	_ = in.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if err := p.Read(make([]byte, n), at); !errors.Is(err, unix.ESRCH) {
		t.Errorf("of a process that has ended: %v", err)
	}
}
