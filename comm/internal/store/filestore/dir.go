package filestore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// The files of a store, beside those of its keys.
const (
	openName  = "open"  // whoever opens or closes the store holds its lock
	usedName  = "used"  // whoever has opened the store holds a shared lock of it
	writeName = "write" // whoever writes holds its lock
	newName   = "new"   // what is being written
	keyPrefix = "key-"
)

// A dir is one handle of the directory of a store.
type dir struct {
	path   string
	opens  *os.File // openName
	used   *os.File // usedName
	writes *os.File // writeName
}

// errRemoved says that somebody else has removed a directory in the meantime.
var errRemoved = errors.New("it was removed while it was in use")

// openDir opens the directory at path, and makes it if there is none. If nobody else has it open, it removes all keys.
func openDir(path string) (*dir, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("store: %w", err)
	}
	d := &dir{path: path}
	err := d.check()
	if err == nil {
		d.opens, err = d.open(openName, os.O_CREATE)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = errRemoved
	}
	if err == nil {
		err = d.enter()
	}
	if err != nil {
		return nil, d.failed(errors.Join(err, d.leave()))
	}
	return d, nil
}

// check returns an error if the directory is not this user's own, or no store.
func (d *dir) check() error {
	info, err := os.Lstat(d.path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("it is no directory: a store is a directory, which it makes")
	}
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d", owner)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others than its owner can write to it (mode %v)", mode)
	}
	files, err := os.ReadDir(d.path)
	for _, f := range files {
		if !isOwn(f) {
			return fmt.Errorf("it is no store: it has a file %.100q", f.Name())
		}
	}
	return err
}

// isOwn reports whether f is a file of a store.
func isOwn(f fs.DirEntry) bool {
	switch f.Name() {
	case openName, usedName, writeName, newName:
		return f.Type().IsRegular()
	}
	return f.Type().IsRegular() && strings.HasPrefix(f.Name(), keyPrefix) && len(f.Name()) == len(fileOf(""))
}

// enter takes the shared lock of who has opened the store. The first one to do so removes all keys.
func (d *dir) enter() (err error) {
	if err := flock(d.opens, syscall.LOCK_EX); err != nil {
		return err
	}
	defer unlock(d.opens)
	if d.isRemoved() {
		return errRemoved
	}
	if d.used, err = d.open(usedName, os.O_CREATE); err != nil {
		return err
	}
	// One that is being killed may still have it exclusively. Its lock of the other file may be free by then.
	if err := flock(d.used, syscall.LOCK_SH); err != nil {
		return err
	}
	if flock(d.used, syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		err = errors.Join(d.removeFiles(openName, usedName), os.WriteFile(d.file(writeName), nil, 0o600))
	}
	if err == nil {
		err = flock(d.used, syscall.LOCK_SH) // again: to ask for more may have lost it
	}
	if err == nil {
		d.writes, err = d.open(writeName, 0)
	}
	return err
}

// leave closes the directory, and removes it if nobody else has it open.
func (d *dir) leave() (err error) {
	if d.used != nil {
		err = d.removeIfLast()
	}
	for _, f := range []*os.File{d.writes, d.used, d.opens} {
		if f != nil {
			_ = f.Close()
		}
	}
	return err
}

func (d *dir) removeIfLast() error {
	if err := flock(d.opens, syscall.LOCK_EX); err != nil {
		return err
	}
	defer unlock(d.opens)
	if d.isRemoved() || flock(d.used, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil
	}
	// Whoever waits for the lock finds its file removed, and begins again.
	err := errors.Join(d.removeFiles(openName), os.Remove(d.file(openName)))
	e := os.Remove(d.path)
	if errors.Is(e, fs.ErrNotExist) || errors.Is(e, syscall.ENOTEMPTY) { // somebody opens it again, or has a file of his own in it
		e = nil
	}
	return errors.Join(err, e)
}

// removeFiles removes the store's files other than those to keep.
func (d *dir) removeFiles(keep ...string) error {
	files, err := os.ReadDir(d.path)
	for _, f := range files {
		if isOwn(f) && !slices.Contains(keep, f.Name()) {
			err = errors.Join(err, os.Remove(d.file(f.Name())))
		}
	}
	return err
}

// isRemoved reports whether the directory's files are not at its path any more.
func (d *dir) isRemoved() bool {
	now, err := os.Stat(d.file(openName))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	own, err := d.opens.Stat()
	return err == nil && !os.SameFile(now, own)
}

func (d *dir) file(name string) string { return filepath.Join(d.path, name) }

// open opens one of the files that have locks.
func (d *dir) open(name string, flag int) (*os.File, error) {
	return os.OpenFile(d.file(name), os.O_RDWR|flag, 0o600)
}

func fileOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return keyPrefix + hex.EncodeToString(sum[:])
}

// failed adds the directory to err.
func (d *dir) failed(err error) error { return fmt.Errorf("store: directory %s: %w", d.path, err) }

// tryLock takes the lock of those who write, unless somebody else has it.
func (d *dir) tryLock() (locked bool, err error) {
	switch err := flock(d.writes, syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, nil
	case err != nil:
		return false, d.failed(err)
	}
	if d.isRemoved() {
		d.unlock()
		return false, d.failed(errRemoved)
	}
	return true, nil
}

func (d *dir) unlock() { unlock(d.writes) }

func unlock(f *os.File) { _ = flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// read returns the value of a key. It needs no lock.
func (d *dir) read(key string) (value []byte, exists bool, err error) {
	value, err = os.ReadFile(d.file(fileOf(key)))
	if d.isRemoved() {
		return nil, false, d.failed(errRemoved)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, d.failed(err)
	}
	return value, true, nil
}

// write sets the value of a key. The caller has locked.
func (d *dir) write(key string, value []byte) error {
	err := os.WriteFile(d.file(newName), value, 0o600)
	if err == nil {
		err = os.Rename(d.file(newName), d.file(fileOf(key)))
	}
	if err != nil {
		_ = os.Remove(d.file(newName))
		return d.failed(err)
	}
	return nil
}

// remove removes a key. The caller has locked.
func (d *dir) remove(key string) (existed bool, err error) {
	err = os.Remove(d.file(fileOf(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, d.failed(err)
	}
	return true, nil
}
