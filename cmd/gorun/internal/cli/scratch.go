package cli

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

// scratch is the job's directory for temporary files: the built program, in a subdirectory because the user chose its name;
// the files by which workers report progress; the sockets of workers that may outlive a round; and, if there is no log
// directory, what workers were doing when one hung, and the workers' error files. If gorun is killed, a guard removes it: that of the
// workers, or one of its own. If they are killed, too, the next gorun does.
type scratch struct {
	dir      string
	cleaner  *guard.Guard // nil if it has no guard of its own
	lock     *os.File     // nil if the machine or the file system has no locks
	lockPath string       // empty without lock
}

// bin is where the program is built.
func (s *scratch) bin() string { return filepath.Join(s.dir, "bin") }

// progress is where workers report progress.
func (s *scratch) progress() string { return filepath.Join(s.dir, "progress") }

const scratchPrefix = "gorun-"

// maxScratchName is how many bytes of a job's name its directory shows: the path of a socket in it has at most 107.
const maxScratchName = 16

func newScratch(name string, logger *slog.Logger) (*scratch, error) {
	chooseTempDir(logger)
	name = launcher.FileName(name)
	name = strings.ToValidUTF8(name[:min(len(name), maxScratchName)], "")
	dir, err := os.MkdirTemp("", scratchPrefix+name+"-*")
	if err == nil {
		dir, err = filepath.Abs(dir) // $TMPDIR may be relative, and workers may change their directory
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create a directory for temporary files ($TMPDIR chooses another place): %w", err)
	}
	s := &scratch{dir: dir}
	if err := s.takeLock(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write temporary files ($TMPDIR chooses another place): %w", err), os.RemoveAll(dir))
	}
	return s, nil
}

// keep gives the directory a guard of its own, which lives until close has removed the directory.
func (s *scratch) keep() (err error) {
	s.cleaner, err = guard.Keep(s.dir)
	return err
}

// removalTimeout is how long the removal of a temporary file may take, because the file system may hang.
const removalTimeout = 5 * time.Second

// close removes the directory. It keeps what workers were doing when one hung, and, if the job has failed, what workers wrote about their
// failure, because the log and the summary name these files.
func (s *scratch) close(failed bool) error {
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
				return fmt.Errorf("%s: no answer within %s", s.dir, removalTimeout)
			}
		}
	}
}

// closeAfter closes s when a job has ended with err.
func (s *scratch) closeAfter(err error, logger *slog.Logger) {
	_, failed := errors.AsType[*agent.WorkerError](err)
	if err := s.close(failed); err != nil {
		logger.Warn("cannot remove temporary files", "error", err)
	}
}

func (s *scratch) remove(failed bool, seen func()) error {
	var kept []string
	if failed {
		kept = []string{"error", "flight"}
		if err := os.Remove(s.lockPath); err != nil && !errors.Is(err, fs.ErrNotExist) { // the next gorun keeps them, too
			return err
		}
	}
	return errors.Join(os.RemoveAll(s.bin()), hang.Prune(s.dir, seen, kept...))
}
