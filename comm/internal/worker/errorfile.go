package worker

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/gorun/gorun/env"
)

// A Culprit is a rank because of which this process fails.
type Culprit struct {
	Rank   int
	Finder int    // rank that found the fault
	Addr   string // at which Rank did not answer; empty: it answered
}

// WriteFinal writes err, which another attempt cannot mend, to the worker's error file, if it has one.
func WriteFinal(err error) { writeWith(err, map[string]any{"restart": false}) }

// WriteBecause writes err to the worker's error file, if it has one, with the rank because of which this process fails.
func WriteBecause(err error, of *Culprit) {
	type peer struct {
		Rank   int `json:"rank"`
		Finder int `json:"finder"`
	}
	type unreachable struct {
		Rank    int    `json:"rank"`
		Address string `json:"address"`
	}
	more := map[string]any{"failed_peer": peer{of.Rank, of.Finder}}
	if of.Addr != "" {
		more["unreachable"] = []unreachable{{of.Rank, of.Addr}}
	}
	writeWith(err, more)
}

// writeWith writes err, with more keys for gorun, in the form of torch.distributed.elastic's error files. It does not
// overwrite a file.
func writeWith(err error, more map[string]any) {
	if path := errorFile(); path != "" {
		_ = writeError(path, err, more) // the caller has err, and reports it
	}
}

func writeError(path string, err error, more map[string]any) (failed error) {
	more["message"] = map[string]any{
		"message":   err.Error(),
		"extraInfo": map[string]any{"timestamp": strconv.FormatInt(time.Now().Unix(), 10)},
	}
	document, failed := json.Marshal(more)
	if failed != nil {
		return failed
	}
	f, failed := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if failed != nil {
		return failed
	}
	defer func() { failed = errors.Join(failed, f.Close()) }()
	_, failed = f.Write(document)
	return failed
}

// errorFile returns the path of the worker's error file. It is empty if no launcher has set one.
func errorFile() string {
	w, err := env.Parse(os.LookupEnv)
	if err != nil {
		return ""
	}
	return w.ErrorFile
}
