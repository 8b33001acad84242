package main

import (
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// buildGorun returns a gorun as a release has it.
func buildGorun(t testing.TB) string {
	t.Helper()
	path, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}
