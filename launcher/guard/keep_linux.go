package guard

import (
	"encoding/json"
	"io"
	"os"
	"time"
)

// Keep starts a guard that has no workers, only a directory: should this process die before Close, it removes that.
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

// keep is Main for a guard of Keep, which is killed if there is nothing to do for it.
func keep(dir string, fromAgent *json.Decoder, socket *os.File) int {
	_, _ = io.Copy(io.Discard, io.MultiReader(fromAgent.Buffered(), socket)) // until the agent dies
	for end := time.Now().Add(cleanupTimeout); os.RemoveAll(dir) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return 1
		}
	}
	return 0
}

// cleanupTimeout is how long the directory may not be empty, since processes that end with the agent still write there.
const cleanupTimeout = 10 * time.Second
