package health

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
)

// leastDisk is how many bytes a directory must have room for: less than any log or temporary file of use.
const leastDisk = 1 << 20

// Disk is the check that files in each of dirs, or in the nearest directory above that exists, can be written and read.
func Disk(dirs ...string) Check {
	return Check{"disk", func(ctx context.Context) error {
		for _, dir := range dirs {
			if err := tryDisk(existing(dir)); err != nil {
				return err
			}
		}
		return nil
	}}
}

func existing(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func tryDisk(dir string) (err error) {
	f, err := os.CreateTemp(dir, ".gorun-health-*")
	if err != nil {
		return err
	}
	_ = os.Remove(f.Name()) // at once, so that nothing is left behind
	defer func() { err = errors.Join(err, f.Close()) }()
	written := bytes.Repeat([]byte("gorun\n\x00\xff"), leastDisk/8)
	if _, err := f.Write(written); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	read := make([]byte, len(written))
	if _, err := f.ReadAt(read, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.Equal(read, written) {
		return fmt.Errorf("%s: a file does not contain what was written to it", dir)
	}
	return nil
}

// What gorun opens for a job of n workers is less than filesOfJob + n*filesOfWorker.
const filesOfJob, filesOfWorker = 64, 8

// Files is the check that this process can open as many files as the given number of workers need.
func Files(workers int) Check {
	return Check{"files", func(context.Context) (err error) {
		need := filesOfJob + workers*filesOfWorker
		open := make([]*os.File, 0, need)
		defer func() {
			for _, f := range open {
				err = errors.Join(err, f.Close())
			}
		}()
		for len(open) < need {
			f, err := os.Open(os.DevNull)
			if err != nil {
				return fmt.Errorf("this job needs %d open files, and after %d: %w (see ulimit -n)", need, len(open), err)
			}
			open = append(open, f)
		}
		return nil
	}}
}

// Port is the check that this node can listen at addr, a name or an IP address, and be reached there by itself; empty: on loopback.
func Port(addr string) Check {
	return Check{"port", func(ctx context.Context) error {
		if addr == "" {
			addr = "localhost"
		}
		var config net.ListenConfig
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(addr, "0"))
		if err != nil {
			return err
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return errors.Join(err, l.Close())
		}
		return errors.Join(conn.Close(), l.Close())
	}}
}
