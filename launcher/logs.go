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
// Files get the workers' bytes unchanged. A file that exists is appended to; none is ever truncated, and only Keep
// removes any. A stream whose file cannot be written goes on to the console instead, also a muted one; one warning for
// each cause, a full disk for example, serves the whole gang.
type LogSpec struct {
	// Dir is the directory of this attempt (see AttemptDir); empty: no files. Start makes it, and a
	// directory for every local rank with a file.
	Dir      string
	Redirect StdMap // streams that go only to their file
	Tee      StdMap // streams that go to their file and to the console, also where Redirect names them
	Discard  bool   // without Dir: what Redirect names goes nowhere, instead of to the console

	// Lines on stdout (stderr) that contain one of these also go to <Dir>/filtered_stdout.log (filtered_stderr.log),
	// one file for all workers, with the worker's Prefix in front, wherever else they go. Without Dir: nowhere.
	StdoutFilters, StderrFilters []string

	// MaxSize in bytes is where a file is rotated, at the end of a line (or 1 MiB later, if none ends); 0: never.
	// stdout.log becomes stdout-<time>-size.log; together and in the order of their names the files have the worker's bytes. The newest Keep of the rotated files stay, for each stream; 0: all of them.
	MaxSize int64
	Keep    int
}

// RunDir makes a new directory <base>/<runID>_<random> for the logs of one job on this node, and base if
// it is missing. An empty base is the system's directory for temporary files. The path is absolute:
// workers get names of files in it, and may work in another directory.
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

// AttemptDir returns the directory of one attempt in a RunDir.
func AttemptDir(runDir string, attempt int) string {
	return filepath.Join(runDir, "attempt_"+strconv.Itoa(attempt))
}

// ErrorFile returns the path of the file to which a worker writes the reason for its failure.
func ErrorFile(attemptDir string, localRank int) string {
	return filepath.Join(attemptDir, strconv.Itoa(localRank), "error.json")
}
