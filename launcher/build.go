package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// BuildError says that a Go program could not be built (exit code 2). The compiler's output went to the
// writer that was passed to Build.
type BuildError struct {
	Target string
	Reason string
}

func (e *BuildError) Error() string { return "cannot build " + e.Target + ": " + e.Reason }

// Build builds Source, in its own module, into the directory dir, and completes Argv. The compiler's output goes to
// output. If there is no Source, Build does nothing.
//
// The error is a *BuildError or that of ctx. Argv can be executed until the caller removes dir.
func (p *Program) Build(ctx context.Context, dir string, output io.Writer) error {
	if p.Source == "" {
		return nil
	}
	from, pkg := p.Source, "."
	switch {
	case p.imported:
		from, pkg = ".", p.Source
	case strings.HasSuffix(p.Source, ".go"):
		from, pkg = filepath.Dir(p.Source), "./"+filepath.Base(p.Source)
	}
	abs, err := filepath.Abs(p.Source)
	if err != nil {
		return &BuildError{Target: p.Source, Reason: err.Error()}
	}
	if dir, err = filepath.Abs(dir); err != nil { // the go command runs in another
		return &BuildError{Target: p.Source, Reason: err.Error()}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return &BuildError{Target: p.Source, Reason: err.Error()}
	}
	if isNoexec(dir) {
		return &BuildError{Target: p.Source, Reason: "the file system of " + dir + " is mounted with noexec, so that the program could not run from there: " +
			"set TMPDIR to a directory on another one"}
	}
	binary := filepath.Join(dir, strings.TrimSuffix(filepath.Base(abs), ".go")) // ps shows this name
	if err := goBuild(ctx, from, pkg, binary, output); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &BuildError{Target: p.Source, Reason: err.Error()}
	}
	p.Argv[0], p.Source = binary, ""
	return nil
}

// goBuild runs the go command, which ends with this process: otherwise nobody would use or remove the binary.
func goBuild(ctx context.Context, dir, pkg, binary string, output io.Writer) error {
	// -C takes the module, workspace and toolchain of dir, and must come first.
	cmd := exec.CommandContext(ctx, "go", "build", "-C", dir, "-o", binary, pkg)
	cmd.Stdout, cmd.Stderr = output, output
	if os.Getenv("GOTMPDIR") == "" { // until it compiles, a signal ends it, and it removes nothing
		cmd.Env = append(os.Environ(), "GOTMPDIR="+filepath.Dir(binary))
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // lets it remove its own files
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = dieWithUs(syscall.SIGINT)
	runtime.LockOSThread() // the signal comes when the thread that forked ends
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("it is Go source, and there is no go command in PATH: install Go, or build the program elsewhere and run the binary")
	}
	if err != nil {
		return fmt.Errorf("go build failed (%w)", err)
	}
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	if info.Mode()&0o111 == 0 { // go build made an archive
		return errors.New("its package is not main, so it is not a program")
	}
	return nil
}
