package worker

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// WriteFlights writes the flight recorder of every open group to out, in JSON, one a line.
func (p *Process) WriteFlights(out io.Writer) error {
	enc := json.NewEncoder(out)
	for _, g := range p.Groups() {
		if err := enc.Encode(p.flight(g)); err != nil {
			return err
		}
	}
	return nil
}

// SaveFlightsIn makes the flights of groups that fail go to the file of this name, if the worker has no error file.
func (p *Process) SaveFlightsIn(path string) (undo func()) {
	p.flights.mu.Lock()
	defer p.flights.mu.Unlock()
	before := p.flights.path
	p.flights.path = path
	return func() { p.flights.path = before }
}

// flightName is the name of a flight file beside a worker's error file, where gorun finds it.
const flightName = "flight.json"

// A flightFile gets the flights of the groups of this process that fail, one a line. It is beside the worker's error file of the present
// round, or else a temporary file.
type flightFile struct {
	mu   sync.Mutex
	path string // of the temporary file; empty: it has not been created yet
}

// add writes f, and returns the path of the file.
func (file *flightFile) add(flight any) (path string, err error) {
	text, err := json.Marshal(flight)
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
	return out.Name(), err
}

func (file *flightFile) open() (*os.File, error) {
	if beside := errorFile(); beside != "" {
		return os.OpenFile(filepath.Join(filepath.Dir(beside), flightName), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	}
	if file.path != "" {
		return os.OpenFile(file.path, os.O_WRONLY|os.O_APPEND, 0)
	}
	out, err := os.CreateTemp("", "gorun-flight-*.json")
	if err == nil {
		file.path = out.Name()
	}
	return out, err
}

// saveFlight writes g's flight to the file, once for a group. It does not if err says that a rank has died or aborted the group, because
// the calls of the group do not explain that. It logs one line if gorun does not name the file in its summary.
func (w *World) saveFlight(g *core.Group, err error, once *sync.Once) {
	f, ok := errors.AsType[*diagnosis.Failure](err)
	if !ok || !f.Late && f.Kind != diagnosis.Mismatched || g.Comm.Err() == nil {
		return
	}
	once.Do(func() {
		p := w.process
		path, err := p.flights.add(p.flight(g))
		switch {
		case err != nil:
			w.Log.Warn("the group has failed, and its flight recorder cannot be written", "ranks", g.Size(), "error", err)
		case errorFile() != "":
			w.Log.Debug("the group has failed", "ranks", g.Size(), "flight_recorder", path)
		default:
			w.Log.Warn("the group has failed", "ranks", g.Size(), "flight_recorder", path)
		}
	})
}
