package worker

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/gorun/gorun/env"
)

// WriteError writes err, with more keys for gorun, to the worker's error file, if it has one, in the form of
// torch.distributed.elastic's error files. It does not overwrite a file.
func WriteError(err error, more map[string]any) {
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
