package comm_test

import (
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
		dir, err := os.MkdirTemp(".", "import") // inside of the module
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("go", "run", "./"+dir).CombinedOutput()
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
