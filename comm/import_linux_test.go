package comm_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// Who imports package comm starts nothing: a program that does so has as many goroutines, and handles the same signals,
// as one that does not. The environment counts when Init looks at it.
func TestImportStartsNothing(t *testing.T) {
	testkit.WithoutRace(t)
	const program = `package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

func main() {
	status, err := os.ReadFile("/proc/self/status")
	look()
	fmt.Println(runtime.NumGoroutine(), signal.Ignored(syscall.SIGQUIT), err)
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "SigBlk") || strings.HasPrefix(line, "SigIgn") || strings.HasPrefix(line, "SigCgt") {
			fmt.Print(line)
		}
	}
}
`
	const look = `
var _ = comm.Sum

func look() {
	os.Setenv("GORUN_KERNELS", "none")
	if _, err := comm.Init(context.Background(), comm.WithStore(comm.NewMemStore()), comm.WithRank(0, 1)); err == nil {
		fmt.Println("Init has not looked at the environment")
	}
}
`
	run := func(source string) string {
		here, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		file, overlay := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "overlay.json")
		at := fmt.Sprintf(`{"Replace": {%q: %q}}`, filepath.Join(here, "program", "main.go"), file) // as if it were in the module
		if err := errors.Join(os.WriteFile(file, []byte(source), 0o600), os.WriteFile(overlay, []byte(at), 0o600)); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("go", "run", "-overlay", overlay, "./program").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	imports := strings.Replace(program, "import (", "import (\n\t\"context\"\n\n\t\"github.com/gorun/gorun/comm\"\n", 1)
	if got, want := run(imports+look), run(program+"func look() {}\n"); got != want || !strings.HasPrefix(got, "1 ") {
		t.Errorf("with comm:\n%s\nwithout:\n%s", got, want)
	}
}
