package launcher

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/launcher/proc"
)

// openTimerFile creates the FIFO of a gang, to which only this user may write. If another process reads from a FIFO
// at path, the error is a *TimerFileError; a FIFO that nobody reads is replaced. An empty path gives nil.
func openTimerFile(path string) (*timerFile, error) {
	if path == "" {
		return nil, nil
	}
	fail := func(err error) (*timerFile, error) {
		return nil, &TimerFileError{Path: path, Err: err}
	}
	err := unix.Mkfifo(path, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if err := removeStale(path); err != nil {
			return fail(err)
		}
		err = unix.Mkfifo(path, 0o600)
	}
	if err != nil {
		return fail(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0) // for writing, too: the end of a writer is not that of the file
	if err != nil {
		_ = os.Remove(path)
		return fail(errors.Unwrap(err))
	}
	return newTimerFile(file), nil
}

// removeStale removes a FIFO that nobody reads from.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return errors.Unwrap(err)
	}
	if info.Mode().Type() != fs.ModeNamedPipe {
		return errors.New("the file exists and is not a FIFO")
	}
	reader, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		_ = reader.Close()
		return errors.New("another process reads from it")
	}
	if !errors.Is(err, unix.ENXIO) {
		return errors.Unwrap(err)
	}
	return os.Remove(path)
}

// close ends the watchdog, if there is one, and removes the file.
func (f *timerFile) close() {
	if f == nil {
		return
	}
	close(f.quit)
	_ = f.file.Close()
	f.running.Wait()
	removed := make(chan struct{})
	go func() {
		defer close(removed)
		_ = os.Remove(f.file.Name()) // somebody else may have done it
	}()
	select {
	case <-removed:
	case <-time.After(removalTimeout):
	}
}

// removalTimeout limits the removal of the file, because its file system may hang.
const removalTimeout = time.Second

// watch carries out the requests in the gang's timer file, if there is one, until that is closed.
func (g *Gang) watch() {
	f := g.timerFile
	if f == nil {
		return
	}
	ready := make(chan struct{})
	f.running.Go(func() { f.announce(ready) })
	f.running.Go(func() {
		w := watchdog{gang: &watchedGang{Gang: g, buf: make([]byte, 64<<10)}, warn: g.spec.warn, timers: timers{}}
		w.run(ready, f)
	})
}

// announce sends on ready whenever there is something to read. It does not read.
func (f *timerFile) announce(ready chan<- struct{}) {
	raw, err := f.file.SyscallConn()
	if err != nil {
		return // it is closed
	}
	for {
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) // of a pipe: does not fail
			return n > 0
		})
		if err != nil {
			return
		}
		select {
		case ready <- struct{}{}:
		case <-f.quit:
			return
		}
	}
}

// A watchedGang is a gang as its watchdog sees it.
type watchedGang struct {
	*Gang
	buf []byte // as large as a pipe, so that one read gets all that is there
}

func (g *watchedGang) read() []byte {
	n := 0
	if raw, err := g.timerFile.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), g.buf) })
	}
	return g.buf[:max(0, n)] // -1: there is nothing
}

func (g *watchedGang) owner(pid int) (born uint64, localRank int, err error) {
	p, ok := proc.Read(pid)
	if !ok || p.Zombie {
		return 0, 0, os.ErrProcessDone
	}
	at := p
	for range maxGenerations {
		if at.Parent == g.guard.Pid() {
			index := slices.Index(g.Pids(), at.Pid)
			if index < 0 {
				return p.StartTicks, -1, nil
			}
			return p.StartTicks, g.spec.localRank(index), nil
		}
		if at.Parent == 0 {
			break
		}
		up, ok := proc.Read(at.Parent)
		if !ok { // it has ended since, and its children have a new parent
			if up, ok = proc.Read(pid); !ok {
				return 0, 0, os.ErrProcessDone
			}
		}
		at = up
	}
	return 0, 0, errStranger
}

const maxGenerations = 256 // from a worker to its youngest descendant

func (g *watchedGang) signal(t timer) error {
	if p, ok := proc.Read(t.pid); !ok || p.Zombie || p.StartTicks != t.born {
		return os.ErrProcessDone
	}
	if t.signal > 0 && t.localRank >= 0 { // before its exit can be reported
		g.workers[t.localRank-g.spec.FirstLocalRank].expired.CompareAndSwap(nil, &Expiry{t.scope, t.deadline, t.pid, t.signal})
	}
	return proc.Process{Pid: t.pid, StartTicks: t.born}.Signal(t.signal)
}
