package job

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestWaiting: a reason is told once, after a second, unless it is over or another one by then.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		w := newWaiting(testkit.LogLines(&said, slog.LevelInfo))
		expect := func(want string) {
			t.Helper()
			time.Sleep(2 * noticeDelay)
			synctest.Wait()
			if got := strings.ReplaceAll(said.String(), "[INFO]  waiting: ", ""); got != want {
				t.Errorf("said %q, want %q", got, want)
			}
			said.Reset()
		}
		w.set("a")
		w.set("")
		expect("")
		w.set("a")
		w.set("b")
		expect("b\n")
		w.set("b")
		expect("")
		w.set("a")
		w.set("b")
		expect("")
		w.set("a")
		expect("a\n")
		w.set("")
		w.set("a")
		expect("a\n")
	})
}
