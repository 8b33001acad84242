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
// the writer given to Resolve.
type BuildError struct {
	Target string
	Reason string
}

func (e *BuildError) Error() string { return "cannot build " + e.Target + ": " + e.Reason }

// build builds target, a package directory or a .go file, within the module that it is in.
func build(ctx context.Context, target string, args []string, output io.Writer) (*Program, error) {
	dir, pkg := target, "."
	if strings.HasSuffix(target, ".go") {
		dir, pkg = filepath.Dir(target), "./"+filepath.Base(target)
	}
	abs, err := filepath.Abs(target)
	if err != nil {
		return nil, &BuildError{Target: target, Reason: err.Error()}
	}
	temp, err := os.MkdirTemp("", "gorun-build-*")
	if err != nil {
		return nil, &BuildError{Target: target, Reason: err.Error()}
	}
	p := &Program{TempDir: temp}
	binary := filepath.Join(temp, strings.TrimSuffix(filepath.Base(abs), ".go")) // ps shows this name
	if err := goBuild(ctx, dir, pkg, binary, output); err != nil {
		_ = p.Close() // it is empty, and the build's error matters more
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &BuildError{Target: target, Reason: err.Error()}
	}
	p.Argv = append([]string{binary}, args...)
	return p, nil
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
