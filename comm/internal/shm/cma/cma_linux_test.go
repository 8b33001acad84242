package cma

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestMain is also a child that says where some of its memory is, and keeps it until its input ends.
func TestMain(m *testing.M) {
	if os.Getenv("CMA_CHILD") == "" {
		os.Exit(m.Run())
	}
	Allow()
	mem := pattern(600_000)
	fmt.Println(uintptr(unsafe.Pointer(&mem[0])))
	_, _ = os.Stdin.Read(make([]byte, 1))
	fmt.Println(mem[0])
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
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	at, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	want, got := pattern(600_000), make([]byte, 500_000) // more than one call reads
	if err := Read(child.Process.Pid, got, at+12_345); err != nil || !bytes.Equal(got, want[12_345:][:len(got)]) {
		t.Errorf("reads something else, %v", err)
	}
	if err := Read(child.Process.Pid, nil, 0); err != nil {
		t.Errorf("nothing, from nowhere: %v", err)
	}
	if err := Read(child.Process.Pid, got, 16); !errors.Is(err, unix.EFAULT) {
		t.Errorf("where there is nothing: %v", err)
	}
	_ = in.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if err := Read(child.Process.Pid, got, at); !errors.Is(err, unix.ESRCH) {
		t.Errorf("of a process that has ended: %v", err)
	}
}
