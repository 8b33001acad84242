package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/death"
)

const (
	maxErrorFile     = 1 << 20         // bytes of an error file that are read
	errorFileTimeout = 5 * time.Second // for all of them, and for the agent's own: their file system may hang
)

var (
	errNotRegular = errors.New("it is not a regular file")
	errNoAnswer   = fmt.Errorf("no answer within %s", errorFileTimeout)
)

// readErrorFilesOf reads the error files of workers that have ended. file returns the path for a local rank. The result
// is by rank, without workers that left no file. It takes errorFileTimeout at most.
func readErrorFilesOf(exits []death.Death, file func(local int) string) map[int]ErrorFile {
	files := make(map[int]ErrorFile)
	for _, x := range exits {
		files[x.Rank] = ErrorFile{File: file(x.LocalRank), Problem: errNoAnswer.Error()}
	}
	answers := make(chan func(), len(exits))
	go func() {
		for _, x := range exits {
			r, exists := readErrorFile(file(x.LocalRank))
			answers <- func() {
				if files[x.Rank] = r; !exists {
					delete(files, x.Rank)
				}
			}
		}
	}()
	limit := time.After(errorFileTimeout)
	for range exits {
		select {
		case note := <-answers:
			note()
		case <-limit:
			return files
		}
	}
	return files
}

// readErrorFile reads one error file, which may be of any kind and size.
func readErrorFile(path string) (r ErrorFile, exists bool) {
	data, written, err := loadErrorFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrorFile{}, false
	}
	if err != nil {
		return ErrorFile{File: path, Problem: err.Error()}, true
	}
	r = parseErrorFile(data[:min(len(data), maxErrorFile)])
	r.File, r.Written = path, written
	if len(data) > maxErrorFile {
		r.Problem = fmt.Sprintf("it is longer than %d bytes", maxErrorFile)
	}
	return r, true
}

// loadErrorFile returns at most maxErrorFile+1 bytes of a file, and when it was written. It does not wait for the writer of a pipe.
func loadErrorFile(path string) (data []byte, written time.Time, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, written, Bare(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, written, Bare(err)
	}
	if !info.Mode().IsRegular() {
		return nil, written, errNotRegular
	}
	data, err = io.ReadAll(io.LimitReader(f, maxErrorFile+1))
	return data, info.ModTime(), Bare(err)
}

// Bare returns an error of a file without its operation and path, for a message that already has them.
func Bare(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

// document returns the contents of the agent's own error file: the root cause's document with its exit code added,
// or else one in the same shape.
func (e *WorkerError) document() ([]byte, error) {
	r := e.ErrorFiles[e.Root.Rank]
	document, message := make(map[string]any), map[string]any(nil)
	if r.Document != nil {
		d := json.NewDecoder(bytes.NewReader(r.Document))
		d.UseNumber()
		if err := d.Decode(&document); err != nil {
			return nil, err
		}
		if message, _ = document["message"].(map[string]any); message == nil {
			message = map[string]any{"message": r.Message}
		}
	} else {
		message = map[string]any{
			"message": e.Error(),
			"extraInfo": map[string]any{
				"py_callstack": strings.Join(e.explanation(e.Root, shownLines), "\n"),
				"timestamp":    strconv.FormatInt(e.Root.At.Unix(), 10),
			},
		}
	}
	message["errorCode"] = e.Root.ExitCode
	document["message"] = message
	return json.Marshal(document)
}

// writeErrorFile writes the root cause for the launcher that started this agent, if that launcher named a file. It takes
// errorFileTimeout at most.
func (e *WorkerError) writeErrorFile(path string) error {
	document, err := e.document()
	if path == "" || err != nil {
		return err
	}
	err, inTime := within(errorFileTimeout, func() error { return replaceErrorFile(path, document) })
	if !inTime {
		return errNoAnswer
	}
	return err
}

// replaceErrorFile creates a file or replaces a regular file. It overwrites a file that it cannot replace, such as one that is
// mounted into a container.
func replaceErrorFile(path string, document []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return errNotRegular
	}
	failed := replace(path, document)
	if failed != nil && err == nil {
		return os.WriteFile(path, document, 0o644)
	}
	return failed
}

func replace(path string, document []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".error-*.json")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(document)
	if err := cmp.Or(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
