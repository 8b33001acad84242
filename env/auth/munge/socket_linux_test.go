package munge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/clustertest"
)

// TestVerbose: of what a program writes without end, the beginning is kept.
func TestVerbose(t *testing.T) {
	program(t, "verbose", "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; exit $1")
	if out, err := run(t.Context(), "", "verbose", "0"); err != nil || len(out) != maxOutput {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if _, err := run(t.Context(), "", "verbose", "1"); err == nil || len(err.Error()) > 4*maxCredential {
		t.Errorf("%.1000v", err)
	}
}

// program puts a script in front of PATH.
func program(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestSocketOfSlurm: if only the daemon works that slurm.conf names, that one is used.
func TestSocketOfSlurm(t *testing.T) {
	listens := clustertest.StartMUNGE(t)
	t.Setenv("PATH", clustertest.MUNGEPrograms(t, filepath.Join(t.TempDir(), "nobody"))+":"+os.Getenv("PATH"))
	t.Cleanup(func() { socket.Store(nil) })
	config := func(authInfo string) {
		program(t, "scontrol", fmt.Sprintf("echo 'AuthAltTypes            = (null)'\necho 'AuthInfo                = %s'\necho 'AuthType                = auth/munge'", authInfo))
	}
	for authInfo, want := range map[string]string{
		"(null)":                      "nobody",
		"ttl=60":                      "nobody",
		"socket=/nowhere/munge":       "/nowhere/munge",
		"socket=/nowhere/munge,ttl=1": "/nowhere/munge\"",
	} {
		config(authInfo)
		if err := Check(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("AuthInfo = %s: %v, want %s in it", authInfo, err, want)
		}
	}
	program(t, "scontrol", "exit 1")
	if err := Check(t.Context()); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("no answer of Slurm: %v", err)
	}
	config("ttl=60,socket=" + listens)
	if err := Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	credential, err := encode(t.Context(), "text")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := decode(t.Context(), credential); text != "text" {
		t.Errorf("got %q, %v", text, err)
	}
}
