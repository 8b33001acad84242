package remote

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// TestScaled: the launcher learns how many nodes the job needs before it learns how the job has ended.
func TestScaled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		b.start()
		for _, least := range []int{1, 300} {
			b.report(report{least})
		}
		b.end <- frame.Outcome{}
		_, _ = b.stdout.Close(), b.stderr.Close()
		want := []string{string(frame.AppendScaled(nil, 1)), string(frame.AppendScaled(nil, 300))}
		for i := range want {
			want[i] = string(rune('0'+frame.Scaled)) + want[i][5:]
		}
		if text, _ := b.said(); !slices.Equal(text, append(want, "7{\"code\":0}")) {
			t.Errorf("%q, want %q and the outcome", text, want)
		}
		b.wantDone("")
		_ = b.to.Close()
		b.report(report{2}) // nobody waits for it any more
	})
}

// TestScaledUnread: a launcher that has gone learns nothing, and holds up nothing.
func TestScaledUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		b.start()
		_ = b.to.Close()
		synctest.Wait()
		b.report(report{1})
		if text, _ := b.said(); len(text) > 0 {
			t.Errorf("%q", text)
		}
		b.end <- frame.Outcome{Code: 143, Cause: frame.Stopped, Signal: 15}
		_, _ = b.stdout.Close(), b.stderr.Close()
		time.Sleep(restTimeout)
		b.wantDone("the connection to the launcher has ended")
	})
}

func TestFollow(t *testing.T) {
	two := string(frame.AppendScaled(nil, 2))
	ended := string(frame.Append(nil, frame.Ended, []byte("{}")))
	for said, want := range map[string]string{
		"":                            "[] ",
		ended:                         "[] {}",
		two + ended:                   "[2] {}",
		two + two + ended + two:       "[2 2] {}",
		two:                           "[2] ",
		two + ended[:6]:               "[2] ",
		two[:5] + "\x00\x00\x00\x00":  "[] ",
		"{\"code\":1}":                "[] ",
		two + "\x09\x00\x00\x00\x00":  "[2 0] ", // a Heartbeat
		two + "\x05\x00\x00\x00\x01x": "[2] ",
	} {
		var least []int
		outcome := follow(strings.NewReader(said), func(r report) { least = append(least, r.least) })
		if got := fmt.Sprintf("%v %s", least, outcome); got != want {
			t.Errorf("%q: %s, want %s", said, got, want)
		}
	}
}

// FuzzFollow: whatever gorun says, what the proxy passes on is within the limits.
func FuzzFollow(f *testing.F) {
	f.Add(frame.Append(frame.AppendScaled(nil, 3), frame.Ended, []byte("{}")))
	f.Add([]byte("\x0a\x00\x00\x00\x04\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		outcome := follow(bytes.NewReader(b), func(r report) {
			if n := r.least; n < 0 || n > frame.MaxNodes {
				t.Errorf("%q: %d nodes", b, n)
			}
		})
		if len(outcome) > frame.MaxOutcome {
			t.Errorf("an outcome of %d bytes", len(outcome))
		}
	})
}
