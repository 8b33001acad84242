package filestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm/store"
)

// The files of a store, beside those of its keys.
const (
	openName  = "open"  // whoever has opened the store holds a shared lock of it
	writeName = "write" // whoever writes holds its lock
	newName   = "new"   // what is being written
	keyPrefix = "key-"
)

// A dir is one handle of the directory of a store.
type dir struct {
	path   string
	root   *os.Root
	opened *os.File // openName
	writes *os.File // writeName
}

// openDir opens the directory at path, and makes it if there is none. If nobody else has it open, it removes all keys.
func openDir(path string) (*dir, error) {
	for {
		d, err := tryOpen(path)
		if !errors.Is(err, errRemoved) {
			return d, err
		}
	}
}

// errRemoved says that the last process to use a directory has removed it in the meantime.
var errRemoved = errors.New("it was removed while it was in use")

func tryOpen(path string) (_ *dir, err error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("store: %w", err)
	}
	d := &dir{path: path}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if err := d.openRoot(); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		file **os.File
		name string
	}{{&d.opened, openName}, {&d.writes, writeName}} {
		*f.file, err = d.root.OpenFile(f.name, os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errRemoved
		}
		if err != nil {
			return nil, d.failed(errors.Join(err, d.removeIfUnused()))
		}
	}
	first := flock(d.opened, syscall.LOCK_EX|syscall.LOCK_NB) == nil
	if first {
		err = d.removeKeys()
	}
	// Nobody who takes the lock for a moment here to find out whether he is the first, or the last, keeps it.
	if err = errors.Join(err, flock(d.opened, syscall.LOCK_SH)); err != nil {
		return nil, d.failed(err)
	}
	if d.isRemoved() {
		return nil, errRemoved
	}
	return d, nil
}

// openRoot opens the directory itself, and refuses it if it is not this user's own, or no store.
func (d *dir) openRoot() error {
	info, err := os.Lstat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errRemoved
	case err != nil:
		return d.failed(err)
	case !info.IsDir():
		return d.failed(errors.New("it is no directory: a store is a directory, which it makes"))
	}
	if d.root, err = os.OpenRoot(d.path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errRemoved
		}
		return d.failed(err)
	}
	now, err := d.root.Stat(".")
	if err != nil {
		return d.failed(err)
	}
	owner, mode := int(now.Sys().(*syscall.Stat_t).Uid), now.Mode().Perm()
	switch {
	case !os.SameFile(info, now):
		return errRemoved // and made again, or replaced by a link, which the next look finds
	case owner != os.Geteuid():
		return d.failed(fmt.Errorf("it belongs to user %d", owner))
	case mode&0o022 != 0:
		return d.failed(fmt.Errorf("others than its owner can write to it (mode %v)", mode))
	}
	names, err := d.names()
	for _, name := range names {
		if !isOwn(name) {
			return d.failed(fmt.Errorf("it is no store: it has a file %.100q", name))
		}
	}
	return err
}

func isOwn(name string) bool {
	isKey := strings.HasPrefix(name, keyPrefix) && len(name) == len(fileOf(""))
	return isKey || name == openName || name == writeName || name == newName
}

// names returns the names of the files.
func (d *dir) names() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, d.failed(err)
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, d.failed(errRemoved)
	}
	if err != nil {
		return nil, d.failed(err)
	}
	return names, nil
}

// failed adds the directory to err.
func (d *dir) failed(err error) error { return fmt.Errorf("store: directory %s: %w", d.path, err) }

// isRemoved reports whether the directory's files are not at its path any more.
func (d *dir) isRemoved() bool {
	now, err := os.Stat(d.path + "/" + openName)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	own, err := d.opened.Stat()
	return err == nil && !os.SameFile(now, own)
}

// removeKeys removes what an earlier run has left.
func (d *dir) removeKeys() error {
	names, err := d.names()
	for _, name := range names {
		if name != openName && name != writeName && isOwn(name) {
			err = errors.Join(err, d.root.Remove(name))
		}
	}
	return err
}

// leave closes the directory, and removes it if nobody else has it open.
func (d *dir) leave() error {
	err := d.removeIfUnused()
	d.close()
	return err
}

func (d *dir) removeIfUnused() error {
	if d.opened == nil { // nobody knows who has it open, and there is no key if nobody has
		_ = os.Remove(d.path)
		return nil
	}
	if d.isRemoved() || flock(d.opened, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil
	}
	err := d.removeKeys()
	for _, name := range []string{writeName, openName} {
		if e := d.root.Remove(name); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if e := os.Remove(d.path); e != nil && !errors.Is(e, fs.ErrNotExist) && !errors.Is(e, syscall.ENOTEMPTY) { // somebody opens it again
		err = errors.Join(err, e)
	}
	return err
}

func (d *dir) close() {
	for _, f := range []*os.File{d.opened, d.writes} {
		if f != nil {
			_ = f.Close()
		}
	}
	if d.root != nil {
		_ = d.root.Close()
	}
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// lockWrites waits for the lock of those who write. done ends the wait, too.
func (d *dir) lockWrites(ctx context.Context, done <-chan struct{}) error {
	for pause := shortestPause; ; {
		err := flock(d.writes, syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if err := sleep(ctx, done, &pause); err != nil {
			return err
		}
	}
}

func (d *dir) unlockWrites() { _ = flock(d.writes, syscall.LOCK_UN) }

const shortestPause, longestPause = 100 * time.Microsecond, 10 * time.Millisecond

// sleep sleeps for a pause, and makes it longer for the next time.
func sleep(ctx context.Context, done <-chan struct{}, pause *time.Duration) error {
	again := time.NewTimer(*pause)
	defer again.Stop()
	*pause = min(2**pause, longestPause)
	select {
	case <-again.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return store.ErrClosed
	}
}

func fileOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return keyPrefix + hex.EncodeToString(sum[:])
}

// read returns the value of a key.
func (d *dir) read(key string) (value []byte, exists bool, err error) {
	f, err := d.root.Open(fileOf(key))
	if errors.Is(err, fs.ErrNotExist) {
		if d.isRemoved() {
			return nil, false, d.failed(errRemoved)
		}
		return nil, false, nil
	}
	if err != nil {
		return nil, false, d.failed(err)
	}
	defer func() { _ = f.Close() }()
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(f, store.MaxValue+1))
	if err == nil && n > store.MaxValue {
		err = fmt.Errorf("%s has more than %d bytes", f.Name(), store.MaxValue)
	}
	if err != nil {
		return nil, false, d.failed(err)
	}
	return b.Bytes(), true, nil
}

// write sets the value of a key. Only who has locked writes may call it.
func (d *dir) write(key string, value []byte) error {
	if d.isRemoved() {
		return d.failed(errRemoved)
	}
	err := d.root.WriteFile(newName, value, 0o600)
	if err == nil {
		err = d.root.Rename(newName, fileOf(key))
	}
	if err != nil {
		_ = d.root.Remove(newName)
		return d.failed(err)
	}
	return nil
}

// remove removes a key. Only who has locked writes may call it.
func (d *dir) remove(key string) error {
	if err := d.root.Remove(fileOf(key)); err != nil {
		return d.failed(err)
	}
	return nil
}
