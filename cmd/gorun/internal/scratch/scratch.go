// Package scratch is the directory of a job for temporary files, which is removed however the job ends.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/hang"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/launcher/guard"
)

// A Dir has the built program, in a subdirectory because the user chose its name; the files by which workers report
// progress; the sockets of workers that may outlive a round; and, if there is no log directory, what workers were
// doing when one hung, and the workers' error files. If gorun is killed, a guard removes it: that of the workers, or
// one of its own. If they are killed, too, the next gorun does.
type Dir struct {
	Path     string
	cleaner  *guard.Guard // nil if it has no guard of its own
	lock     *os.File     // nil if the machine or the file system has no locks
	lockPath string       // empty without lock
}

// Bin is where the program is built.
func (s *Dir) Bin() string { return filepath.Join(s.Path, "bin") }

// Progress is where workers report progress.
func (s *Dir) Progress() string { return filepath.Join(s.Path, "progress") }

const prefix = "gorun-"

// maxName is how many bytes of a job's name its directory shows: the path of a socket in it has at most 107.
const maxName = 16

// New creates a directory, whose name begins with that of the job, or a part of it.
func New(name string, logger *slog.Logger) (*Dir, error) {
	ChooseTempDir(logger)
	name = launcher.FileName(name)
	name = strings.ToValidUTF8(name[:min(len(name), maxName)], "")
	dir, err := os.MkdirTemp("", prefix+name+"-*")
	if err == nil {
		dir, err = filepath.Abs(dir) // $TMPDIR may be relative, and workers may change their directory
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create a directory for temporary files ($TMPDIR chooses another place): %w", err)
	}
	s := &Dir{Path: dir}
	if err := s.takeLock(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write temporary files ($TMPDIR chooses another place): %w", err), os.RemoveAll(dir))
	}
	return s, nil
}

// Keep gives the directory a guard of its own, which lives until Close has removed the directory.
func (s *Dir) Keep() (err error) {
	s.cleaner, err = guard.Keep(s.Path)
	return err
}

// removalTimeout is how long the removal of a temporary file may take, because the file system may hang.
const removalTimeout = 5 * time.Second

// Close removes the directory. It keeps what workers were doing when one hung, and, if the job has failed, what
// workers wrote about their failure, because the log and the summary name these files.
func (s *Dir) Close(failed bool) error {
	if s.cleaner != nil {
		defer s.cleaner.Close()
	}
	if s.lock != nil {
		defer func() { _ = s.lock.Close() }() // it was only locked
	}
	removed := make(chan error, 1)
	var files atomic.Int64
	go func() { removed <- s.remove(failed, func() { files.Add(1) }) }()
	for {
		before := files.Load()
		select {
		case err := <-removed:
			s.sweep()
			return err
		case <-time.After(removalTimeout):
			if files.Load() == before {
				return fmt.Errorf("%s: no answer within %s", s.Path, removalTimeout)
			}
		}
	}
}

// CloseAfter closes s when a job has ended with err.
func (s *Dir) CloseAfter(err error, logger *slog.Logger) {
	_, failed := errors.AsType[*agent.WorkerError](err)
	if err := s.Close(failed); err != nil {
		logger.Warn("cannot remove temporary files", "error", err)
	}
}

func (s *Dir) remove(failed bool, seen func()) error {
	var kept []string
	if failed {
		kept = []string{"error", "flight"}
		if err := os.Remove(s.lockPath); err != nil && !errors.Is(err, fs.ErrNotExist) { // the next gorun keeps them, too
			return err
		}
	}
	return errors.Join(os.RemoveAll(s.Bin()), hang.Prune(s.Path, seen, kept...))
}
