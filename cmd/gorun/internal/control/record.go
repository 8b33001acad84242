package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gorun/gorun/env/auth"
)

// A Record says how to reach the agents of a job of gorun launch, which are on other machines. gorun launch keeps it in a file beside the
// sockets of agents while it runs, and holds a lock on the file. So nobody has locked the record of a gorun launch that was killed.
type Record struct {
	Job       string            `json:"job"`
	Backend   string            `json:"backend"`
	Endpoint  string            `json:"endpoint"`       // where the nodes meet: that of status.Node
	Conf      map[string]string `json:"conf,omitempty"` // the settings of --rdzv-conf
	Token     string            `json:"token,omitempty"`
	TokenFile string            `json:"token_file,omitempty"` // in place of the token
}

const (
	recordSuffix = ".job"
	maxRecord    = 64 << 10 // bytes
	maxTries     = 10       // to write one
)

// WriteRecord writes a record into the first directory that can be used, and removes from there the records of processes that were killed.
// remove removes the new one.
func WriteRecord(r Record) (remove func(), err error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if _, err := parseRecord(text); err != nil {
		return nil, err
	}
	var errs []error
	for _, dir := range directories() {
		err := prepare(dir)
		if err == nil {
			removeStale(dir)
			if remove, err = writeRecordIn(dir, fileName(os.Getpid(), r.Job, recordSuffix), text); err == nil {
				return remove, nil
			}
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// writeRecordIn writes a file under another name, locks it, and gives it its name when it is complete. removeStale may remove the file before
// it is locked: then writeRecordIn tries again.
func writeRecordIn(dir, name string, text []byte) (remove func(), err error) {
	for range maxTries {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".*"+recordSuffix); err != nil { // mode 0600
			return nil, err
		}
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			if _, err = f.Write(text); err == nil {
				err = os.Rename(f.Name(), filepath.Join(dir, name))
			}
		}
		if err == nil {
			return func() {
				_ = os.Remove(filepath.Join(dir, name)) // somebody may have removed it
				_ = f.Close()                           // which ends the lock
			}, nil
		}
		_ = os.Remove(f.Name()) // it may be gone
		_ = f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, fmt.Errorf("cannot write a record in %s: %w", dir, err)
}

// Records returns the paths of the records of this user on this machine. It removes those of processes that were killed.
func Records() (list []string) {
	for _, dir := range directories() {
		removeStale(dir)
	}
	list, _ = filesIn(directories(), recordSuffix) // Sockets says which directories cannot be used
	return list
}

// removeStale removes the records of a directory that nobody has locked. That includes those that still have another name.
func removeStale(dir string) {
	entries, _ := read(dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), recordSuffix) {
			continue
		}
		if f, err := auth.OpenOwn(filepath.Join(dir, e.Name())); err == nil {
			if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
				_ = os.Remove(f.Name()) // somebody else may have removed it
			}
			_ = f.Close() // which ends the lock
		}
	}
}

// ReadRecord reads a record. The error is fs.ErrNotExist if the job has just ended.
func ReadRecord(path string) (Record, error) {
	f, err := auth.OpenOwn(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Record{}, err
	case err != nil:
		return Record{}, fmt.Errorf("%w: remove it", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return Record{}, err
	}
	r, err := parseRecord(text)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w: remove it", path, err)
	}
	return r, nil
}

func parseRecord(text []byte) (r Record, err error) {
	if len(text) > maxRecord {
		return Record{}, fmt.Errorf("a record has at most %d bytes", maxRecord)
	}
	if json.Unmarshal(text, &r) != nil || r.Job == "" || r.Backend == "" || r.Endpoint == "" { // the error of Unmarshal could show the token
		return Record{}, errors.New("it is no record of a job")
	}
	return r, nil
}
