package guard

import (
	"encoding/json"
	"io"
	"os"
	"time"
)

// Keep starts a guard that has no workers, only a directory: if this process dies before Close, the guard removes the directory.
func Keep(dir string) (*Guard, error) {
	g, err := start(forDirectory)
	if err != nil {
		return nil, err
	}
	if err := g.Begin(Request{TempDir: []byte(dir)}, nil); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// keep is Main for a guard of Keep. Such a guard is killed if it is no longer needed.
func keep(dir string, fromAgent *json.Decoder, socket *os.File) int {
	_, _ = io.Copy(io.Discard, io.MultiReader(fromAgent.Buffered(), socket)) // until the agent dies
	for end := time.Now().Add(cleanupTimeout); os.RemoveAll(dir) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return 1
		}
	}
	return 0
}

// cleanupTimeout is how long removing the directory may fail because processes that end with the agent still write to it.
const cleanupTimeout = 10 * time.Second
