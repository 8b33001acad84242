package comm

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/env"
)

// flightName is the name of a flight file beside a worker's error file, where gorun finds it.
const flightName = "flight.json"

// A flightFile gets the flights of the groups of this process that fail, one a line. It is created when the first group fails: beside the
// worker's error file, or else as a temporary file.
type flightFile struct {
	mu   sync.Mutex
	path string // empty: it has not been created yet
}

var failedFlights flightFile

// add writes f, and returns the path of the file.
func (file *flightFile) add(f Flight) (path string, err error) {
	text, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	file.mu.Lock()
	defer file.mu.Unlock()
	out, err := file.open()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = out.Write(append(text, '\n'))
	return file.path, err
}

func (file *flightFile) open() (out *os.File, err error) {
	switch dir := errorFileDir(); {
	case file.path != "":
		return os.OpenFile(file.path, os.O_WRONLY|os.O_APPEND, 0)
	case dir != "":
		out, err = os.OpenFile(filepath.Join(dir, flightName), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	default:
		out, err = os.CreateTemp("", "gorun-flight-*.json")
	}
	if err == nil {
		file.path = out.Name()
	}
	return out, err
}

// errorFileDir returns the directory of the worker's error file. It is empty if no launcher has set one.
func errorFileDir() string {
	w, err := env.Parse(os.LookupEnv)
	if err != nil || w.ErrorFile == "" {
		return ""
	}
	return filepath.Dir(w.ErrorFile)
}

// saveFlight writes g's flight to the file, once for a group. It does not if err says that a rank has died or aborted the group, because
// the calls of the group do not explain that. It logs one line if gorun does not name the file in its summary.
func (g *Group) saveFlight(err error) {
	f, ok := errors.AsType[*diagnosis.Failure](err)
	if !ok || !f.Late && f.Kind != diagnosis.Mismatched || g.core.Comm.Err() == nil {
		return
	}
	g.logged.Do(func() {
		log, ranks := g.world.Log, g.Size()
		path, err := failedFlights.add(g.Flight())
		switch {
		case err != nil:
			log.Warn("the group has failed, and its flight recorder cannot be written", "ranks", ranks, "error", err)
		case errorFileDir() != "":
			log.Debug("the group has failed", "ranks", ranks, "flight_recorder", path)
		default:
			log.Warn("the group has failed", "ranks", ranks, "flight_recorder", path)
		}
	})
}
