package launcher

import (
	"bytes"
	"os"
	"testing"

	"github.com/gorun/gorun/launcher/spool"
)

// BenchmarkOutput is one worker's stream, from its pipe to where it leads.
func BenchmarkOutput(b *testing.B) {
	chunk := bytes.Repeat([]byte("step 1000 of 100000, loss 0.12345, 1234.5 samples a second\n"), 64)
	progress := bytes.Repeat([]byte("50% of a progress bar with a few more characters in it.....\r"), 64)
	progress[len(progress)-1] = '\n'
	all := StdMap{Default: Both}
	for _, bench := range []struct {
		name  string
		chunk []byte
		logs  LogSpec
		live  bool
	}{
		{name: "console", chunk: chunk},
		{name: "console/invalid", chunk: bytes.ReplaceAll(chunk, []byte("."), []byte("\xff"))},
		{name: "console/live", chunk: progress, live: true},
		{name: "tee", chunk: chunk, logs: LogSpec{Dir: b.TempDir(), Tee: all, MaxSize: 64 << 20, Keep: 1}},
		{name: "redirect", chunk: chunk, logs: LogSpec{Dir: b.TempDir(), Redirect: all, MaxSize: 64 << 20, Keep: 1}},
		{name: "filter", chunk: chunk, logs: LogSpec{Dir: b.TempDir(), Redirect: all, StdoutFilters: []string{"error", "accuracy"}}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = null.Close() }()
			r, w, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			o := newOutput(&Spec{Spool: spool.New(), Stdout: null, Live: bench.live, Logs: bench.logs, Workers: []WorkerSpec{{Prefix: "[0] "}}})
			s := o.stream(0, Stdout, r)
			go s.run()
			b.SetBytes(int64(len(bench.chunk)))
			for b.Loop() {
				if _, err := w.Write(bench.chunk); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
			<-s.done
		})
	}
}
