package launcher

import (
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/launcher/guard"
)

// preloadLimit is how long the imports of an interpreter may take.
const preloadLimit = 60 * time.Second

//go:embed preload/*.py
var bootstrap embed.FS

// Start starts the interpreter of argv, which is that of all workers, with the guard. warn gets what it prints. It does not wait for the
// imports.
func (p *Preload) Start(g *guard.Guard, argv []string, warn func(msg string)) error {
	if p == nil {
		return nil
	}
	module, err := p.module()
	if err != nil {
		return fmt.Errorf("--preload: %w", err)
	}
	output, theirs, err := os.Pipe()
	if err != nil {
		_ = module.Close()
		return fmt.Errorf("--preload: %w", err)
	}
	go func() {
		defer func() { _ = output.Close() }()
		relay(output, func(line string) { warn("--preload: " + line) })
	}()
	g.Preload(guard.Preload{Program: guard.Pack(argv), Env: guard.Pack(p.Env), Modules: guard.Pack(p.Modules), Limit: cmp.Or(p.limit, preloadLimit),
		Impossible: p.impossible(argv[0])}, module, theirs)
	return nil
}

// checkBootstrap is a program that fails unless the bootstrap would reach a Python that is started as the interpreter is.
const checkBootstrap = "import os, sys; os.fstat(3); os.fstat(4); sys.exit(os.environ.get('PYTHONPATH') != '/proc/self/fd/4')"

// checkLimit is how long a Python may take to start.
const checkLimit = 10 * time.Second

// impossible says why a Python that is a script cannot be preloaded: without the bootstrap, its interpreter would run the program.
// Empty: it can.
func (p *Preload) impossible(python string) string {
	if real, err := filepath.EvalSymlinks(python); err == nil && strings.HasPrefix(filepath.Base(real), "python2") {
		return python + " is Python 2"
	}
	file, err := os.Open(python)
	if err != nil {
		return "" // which the start of the workers says
	}
	defer func() { _ = file.Close() }()
	var magic [2]byte
	if _, err := io.ReadFull(file, magic[:]); err != nil || string(magic[:]) != "#!" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkLimit)
	defer cancel()
	check := exec.CommandContext(ctx, python, "-c", checkBootstrap)
	check.Env, check.ExtraFiles = append(slices.Clip(p.Env), "PYTHONPATH=/proc/self/fd/4"), []*os.File{file, file}
	if check.Run() == nil {
		return ""
	}
	return python + " is a script that does not pass on PYTHONPATH and open files to Python"
}

// module returns a zip file with the modules of the bootstrap, from which Python imports it. It has no name, so none is left behind.
func (p *Preload) module() (*os.File, error) {
	fd, err := unix.MemfdCreate("preload", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "preload")
	if err := writeModules(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func writeModules(to io.Writer) error {
	archive := zip.NewWriter(to)
	modules, _ := bootstrap.ReadDir("preload") // is embedded
	for _, m := range modules {
		text, _ := bootstrap.ReadFile("preload/" + m.Name())
		w, err := archive.CreateHeader(&zip.FileHeader{Name: m.Name(), Method: zip.Store})
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			return err
		}
	}
	return archive.Close()
}

// maxRelayed is how many lines of an interpreter are shown.
const maxRelayed = 100

// relay passes on the first lines that come, and reads them all.
func relay(from io.Reader, pass func(line string)) {
	lines := bufio.NewReaderSize(from, 4<<10)
	for n := 0; ; {
		line, isPrefix, err := lines.ReadLine()
		if err != nil {
			return
		}
		if text := strings.TrimSpace(string(line)); text != "" && !isPrefix && n < maxRelayed {
			pass(strings.ToValidUTF8(text, "\uFFFD"))
			n++
		}
	}
}
