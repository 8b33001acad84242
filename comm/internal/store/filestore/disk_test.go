//go:build linux

package filestore_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

// A call that finds no room says so and leaves no file; the store works on when there is room again.
func TestFullDisk(t *testing.T) { testkit.SmallDisk(t, openOnFullDisk) }

func openOnFullDisk(t *testing.T, dir string) {
	s := open(t, dir+"/open")
	if err := os.WriteFile(dir+"/full", make([]byte, 128<<10), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if err := s.Set(t.Context(), "key", make([]byte, 8<<10)); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), dir+"/open") {
		t.Errorf("a value is written: %v", err)
	}
	if got := listing(t, dir); strings.Contains(got, "/new") || strings.Contains(got, "/key") {
		t.Errorf("there is a file that nobody uses: %s", got)
	}
	if err := os.Remove(dir + "/full"); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), "key", []byte("value")); err != nil {
		t.Error(err)
	}
	if got, err := s.Get(t.Context(), "key"); err != nil || string(got) != "value" {
		t.Errorf("got %q, %v", got, err)
	}
}
