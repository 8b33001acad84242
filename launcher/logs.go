package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// LogSpec says which streams of which workers go to files, in torchrun's layout:
//
//	<Dir>/<local rank>/stdout.log
//	<Dir>/<local rank>/stderr.log
//
// Files get the workers' bytes unchanged. Output is appended to an existing file; no file is ever truncated, and only
// Keep removes any. If a stream's file cannot be written, the stream goes to the console instead, even if it is muted.
// There is one warning for each cause, for example a full disk, for the whole gang.
type LogSpec struct {
	// Dir is the directory of this attempt (see AttemptDir); empty: no files. Start creates it, and a directory
	// for every local rank with a file.
	Dir      string
	Redirect StdMap // streams that go only to their file
	Tee      StdMap // streams that go to their file and to the console, also where Redirect names them
	Discard  bool   // without Dir: what Redirect names goes nowhere, instead of to the console

	// Lines on stdout (stderr) that contain one of these texts also go to <Dir>/filtered_stdout.log
	// (filtered_stderr.log), one file for all workers, with the worker's Prefix in front. Without Dir, they do not.
	StdoutFilters, StderrFilters []string

	// MaxSize is the size in bytes at which a file is rotated, at the next end of a line or at most 1 MiB later; 0: never. stdout.log
	// becomes stdout-<time>-size.log. Together, and in the order of their names, the files contain the worker's bytes. For each stream,
	// only the newest Keep rotated files stay; 0: all.
	MaxSize int64
	Keep    int
}

// RunDir creates a new directory <base>/<runID>_<random> for the logs of one job on this node, and base if it
// is missing. An empty base stands for the system's directory for temporary files. The path is absolute,
// because workers get the names of files in it and may change their directory.
func RunDir(base, runID string) (dir string, err error) {
	if base != "" {
		err = os.MkdirAll(base, 0o755)
	}
	if err == nil {
		dir, err = os.MkdirTemp(base, FileName(runID)+"_*")
	}
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", fmt.Errorf("log directory: %w", err)
	}
	return dir, nil
}

// maxFileName leaves room for the rest of a file's name, which may have 255 bytes.
const maxFileName = 100

// FileName returns a run ID as part of a file name: without separators, and cut to 100 bytes.
func FileName(runID string) string {
	name := strings.ReplaceAll(runID, string(filepath.Separator), "_")
	return strings.ToValidUTF8(name[:min(len(name), maxFileName)], "")
}

const attemptPrefix = "attempt_"

// AttemptDir returns the directory of one attempt in a RunDir.
func AttemptDir(runDir string, attempt int) string {
	return filepath.Join(runDir, attemptPrefix+strconv.Itoa(attempt))
}

// AttemptOf returns the attempt that has a directory of this name; ok is false if the name is another one's.
func AttemptOf(name string) (attempt int, ok bool) {
	number, ok := strings.CutPrefix(name, attemptPrefix)
	attempt, err := strconv.Atoi(number)
	return attempt, ok && err == nil
}

// ErrorFile returns the path of the file to which a worker writes the reason for its failure.
func ErrorFile(attemptDir string, localRank int) string {
	return filepath.Join(attemptDir, strconv.Itoa(localRank), "error.json")
}
