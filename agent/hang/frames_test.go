package hang

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestFrames(t *testing.T) {
	const (
		serving = "goroutine 7 [running]:\ngithub.com/gorun/gorun/comm.status(0x1)\n\t/x/comm/progress.go:9 +0x1\ncreated by github.com/gorun/gorun/env/progress.Serve in goroutine 1\n\t/x/s.go:1 +0x1\n\n"
		waiting = "goroutine 1 [select]:\ngithub.com/gorun/gorun/comm/internal/endpoint.(*Op).park(0x1)\n\t/x/wait.go:9 +0x1\nmain.main()\n\t/src/train.go:20 +0x1d\n\n"
		locked  = "goroutine 1 [sync.Mutex.Lock]:\nsync.runtime_SemacquireMutex(0x1)\n\t/go/sema.go:9 +0x1\nsync.(*Mutex).Lock(...)\n\t/go/mutex.go:9\nexample.com/app/data.(*Loader).next(0x1, {0x2})\n\t/src/loader.go:33 +0x1d\nmain.main()\n\t/src/train.go:20 +0x1d\n\n"
		another = "goroutine 9 [running]:\nmain.loop()\n\t/src/train.go:41 +0x1d\n\n"
	)
	for _, c := range []struct{ stacks, want string }{
		{"", ""},
		{"nonsense", ""},
		{"goroutine 1 [running]:", ""},
		{serving + waiting, "main.main (train.go:20)"},
		{serving + locked, "example.com/app/data.(*Loader).next (loader.go:33)"},
		{serving + another, "main.loop (train.go:41)"},
		{another + waiting, "main.main (train.go:20)"},
		{serving, ""},
	} {
		if got := goFrame(c.stacks); got != c.want {
			t.Errorf("%q: %q, want %q", c.stacks, got, c.want)
		}
	}
	const python = "Thread 0x1 (most recent call first):\n  File \"/lib/threading.py\", line 3 in wait\n\nCurrent thread 0x2 (most recent call first):\n" +
		"  File \"/src/train.py\", line 7 in step\n  File \"/src/train.py\", line 12 in <module>\n"
	for _, c := range []struct{ stacks, want string }{
		{"", ""}, {"at the top\n", ""}, {python, "step (train.py:7) < <module> (train.py:12)"}, {"Thread 0x1 (most recent call first):\n  File \"a.py\", line 1 in f\n", "f (a.py:1)"},
	} {
		if got := inOneLine(pythonFrames(c.stacks)); got != c.want {
			t.Errorf("%q: %q, want %q", c.stacks, got, c.want)
		}
	}
	const spy = "Process 7: python3 train.py\nPython v3.11.7\n\nThread 8 (idle): \"Thread-1\"\n    wait (threading.py:3)\nThread 7 (idle): \"MainThread\"\n    step (train.py:7)\n    <module> (train.py:12)\n"
	for _, c := range []struct{ stacks, want string }{{"", ""}, {spy, "step (train.py:7) < <module> (train.py:12)"}} {
		if got := inOneLine(pySpyFrames(c.stacks)); got != c.want {
			t.Errorf("%q: %q, want %q", c.stacks, got, c.want)
		}
	}
}

// TestWaiting: a thread waits for other ranks if its innermost function is one of torch's that do.
func TestWaiting(t *testing.T) {
	const user = "  File \"/src/train.py\", line 9 in step\n"
	at := func(path string) string { return "  File \"" + path + "\", line 197 in f\n" }
	for text, want := range map[string]bool{
		"":   false,
		user: false,
		at("/usr/lib/python3/dist-packages/torch/autograd/__init__.py") + user:            true,
		at("/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py") + user: true,
		at("/usr/lib/python3/dist-packages/torch/nn/parallel/distributed.py") + user:      true,
		at("/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py") + user:        false,
		user + at("/usr/lib/python3/dist-packages/torch/autograd/__init__.py"):            false, // a hook
		at("/home/me/mytorch/distributed/train.py") + user:                                false,
	} {
		if got := areWaiting(os.Getpid(), pythonFrames(text)); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
	const spy = "Thread 7 (idle): \"MainThread\"\n    backward (torch/autograd/__init__.py:197)\n    <module> (train.py:12)\n"
	if !areWaiting(os.Getpid(), pySpyFrames(spy)) {
		t.Error("py-spy's names are not known")
	}
}

func TestMerge(t *testing.T) {
	got := merge([]json.RawMessage{
		[]byte(`{"rank":1,"group":[0,1],"waits":[{"for":0,"in":"Barrier #8"},{"for":-1,"in":"Recv #1"}],"collectives":[{"seq":7,"call":"AllReduce","state":"done"},{"seq":8,"call":"Barrier","state":"under way","seconds":2.5}]}`),
		[]byte(`{"rank":0,"group":[0,1],"failed":"boom","collectives":[{"seq":6,"call":"AllReduce","state":"done"},{"seq":7,"call":"AllReduce","state":"done"}],"transfers":[{"seq":1,"call":"Send","peer":1,"state":"failed","seconds":0.5}]}`),
		[]byte(`{"rank":2,"group":[2]}`),
		[]byte(`nonsense`),
	})
	want := []string{
		"group [0 1]", "#  rank 0     rank 1", "6  AllReduce  -", "7  AllReduce  AllReduce", "8  -          Barrier under way, 2.5 s",
		"rank 0: the group has failed: boom", "rank 0: #1 Send with 1 failed, 0.5 s", "rank 1 waits for rank 0 in Barrier #8", "rank 1 waits for any rank in Recv #1",
		"group [2]", "#  rank 2",
	}
	var lines []string
	for line := range strings.Lines(got) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
