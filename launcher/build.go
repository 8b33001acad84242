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

// BuildError says that a Go program could not be built (exit code 2). What the compiler had to say went to
// the writer given to Build.
type BuildError struct {
	Target string
	Reason string
}

func (e *BuildError) Error() string { return "cannot build " + e.Target + ": " + e.Reason }

// Build builds Source, within the module that it is in, into the directory dir, and completes Argv. What the compiler
// says goes to output. A program without Source is left as it is.
//
// Errors are *BuildError, or ctx's. Until dir is removed, which is the caller's to do, Argv can be executed.
func (p *Program) Build(ctx context.Context, dir string, output io.Writer) error {
	if p.Source == "" {
		return nil
	}
	from, pkg := p.Source, "."
	if strings.HasSuffix(p.Source, ".go") {
		from, pkg = filepath.Dir(p.Source), "./"+filepath.Base(p.Source)
	}
	abs, err := filepath.Abs(p.Source)
	if err != nil {
		return &BuildError{Target: p.Source, Reason: err.Error()}
	}
	if dir, err = filepath.Abs(dir); err != nil { // the go command runs in another
		return &BuildError{Target: p.Source, Reason: err.Error()}
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

// goBuild runs the go command. The go command ends with this process: without it nobody would use or remove
// the binary.
func goBuild(ctx context.Context, dir, pkg, binary string, output io.Writer) error {
	// -C takes the module, workspace and toolchain of dir, and must come first.
	cmd := exec.CommandContext(ctx, "go", "build", "-C", dir, "-o", binary, pkg)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // lets it remove its own files
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = dieWithUs(syscall.SIGINT)
	runtime.LockOSThread() // the signal comes when the thread that forked ends
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("it is Go source and there is no go command in PATH: install Go, or build it elsewhere and give the binary")
	}
	if err != nil {
		return fmt.Errorf("go build failed (%w)", err)
	}
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	if info.Mode()&0o111 == 0 { // go build made an archive
		return errors.New("its package is not main, so there is no program in it")
	}
	return nil
}
