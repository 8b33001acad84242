package comm

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/worker"
)

// TestNoProgressAfterARound: a call that fails because the round is over is no progress, or the agent would watch this rank in the next round
// before it has entered that. Progress begins again with Rejoin.
func TestNoProgressAfterARound(t *testing.T) {
	onNetworks(t, []string{"shm", "tcp"}, func(t *testing.T, network string) {
		file := filepath.Join(t.TempDir(), "progress")
		a := newTestAgent(t, network, 2, "GORUN_PROGRESS_FILE="+file)
		a.join()
		w := a.workers[0]
		w.do("run", "Barrier")
		for last, quiet := stampOf(t, file), 0; quiet < 30; quiet++ { // until the Barrier waits, and the file is touched no more
			time.Sleep(worker.ProgressInterval / 4)
			if now := stampOf(t, file); now != last {
				last, quiet = now, 0
			}
		}
		before := stampOf(t, file)
		a.lose(1)
		wantError(t, w, w.result(), "rank 1 (pid ", 1)
		time.Sleep(3 * worker.ProgressInterval)
		if !stampOf(t, file).Equal(before) {
			t.Error("the end of a call after the end of the round is progress")
		}
		a.next(2)
		a.join()
		if stampOf(t, file).Equal(before) {
			t.Error("Rejoin is no progress")
		}
	})
}

func stampOf(t *testing.T, file string) time.Time {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}
