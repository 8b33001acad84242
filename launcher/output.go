package launcher

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/launcher/spool"
)

// output is where the streams of workers go that start together: the console and the files.
type output struct {
	spec     *Spec
	locals   []int // the local ranks of the workers
	console  *Console
	failures *failures
	filters  map[Std]*filter   // none for a stream without filters
	opening  []<-chan struct{} // closed when a log file has been opened, or could not be
}

func newOutput(s *Spec, locals ...int) *output {
	o := &output{spec: s, locals: locals, console: s.console(), failures: &failures{warn: s.warn}, filters: map[Std]*filter{}}
	o.addFilter(Stdout, s.Logs.StdoutFilters)
	o.addFilter(Stderr, s.Logs.StderrFilters)
	return o
}

func (o *output) addFilter(which Std, texts []string) {
	if len(texts) == 0 || o.spec.Logs.Dir == "" {
		return
	}
	f := &filter{}
	f.users.Store(int32(len(o.locals)))
	for _, text := range texts {
		f.texts = append(f.texts, []byte(text))
	}
	f.file = o.open(o.spec.Logs.Dir, "filtered_"+which.file())
	o.filters[which] = f
}

// openTimeout is how long workers wait for the directories of their log files.
const openTimeout = time.Second

// streams prepares the streams of the workers from their pipes: stdout and stderr of the first, of the second, ...
// It opens all files at the same time, and does not wait long for a file system that does not answer.
func (o *output) streams(pipes []*os.File) []*stream {
	all := make([]*stream, len(pipes))
	for i := range all {
		all[i] = o.stream(o.locals[i/2], [...]Std{Stdout, Stderr}[i%2], pipes[i])
	}
	late := time.After(openTimeout)
	for _, opened := range o.opening {
		select {
		case <-opened:
		case <-late:
			o.spec.warn("log files in %s do not open: output for them waits, and workers that write much will have to wait too", o.spec.Logs.Dir)
			return all
		}
	}
	return all
}

// stream prepares one stream of one worker.
func (o *output) stream(local int, which Std, pipe *os.File) *stream {
	w := o.spec.Workers[local]
	s := newStream(which, pipe, o)
	s.prefix.Store(&prefixes{paint(w.Prefix, w.Rank, o.spec.Color), []byte(w.Prefix)})
	if w.Show > 0 {
		s.room = w.Show
	}
	s.recent, s.local = o.spec.Recent, local
	o.route(s, local, w.Mute)
	return s
}

// route sets where a stream of a local rank goes, and opens its file if it has one.
func (o *output) route(s *stream, localRank int, muted bool) {
	l := o.spec.Logs
	teed := l.Tee.For(localRank)&s.which != 0
	redirected := l.Redirect.For(localRank)&s.which != 0 && !teed
	if l.Dir == "" {
		s.onConsole = !muted && (!redirected || !l.Discard)
		return
	}
	s.onConsole = !muted && !redirected
	if f := o.filters[s.which]; f != nil {
		s.setFilter(f)
	}
	if teed || redirected {
		s.setFile(o.open(filepath.Join(l.Dir, strconv.Itoa(localRank)), s.which.file()))
	}
}

// open opens a log file, and creates its directory if it is missing.
func (o *output) open(dir, name string) *spool.Writer {
	l, path := o.spec.Logs, filepath.Join(dir, name)
	w := o.spec.Spool.Open(spool.File{
		Open: func() (io.WriteCloser, error) {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, err
			}
			return openLogFile(path, l.MaxSize, l.Keep)
		},
		Failed: func(err error) {
			if errors.Is(err, spool.ErrUnread) {
				err = &os.PathError{Op: "write", Path: path, Err: err}
			}
			o.failures.add(fileFailed, err)
		},
		Unclosed: func(err error) { o.failures.add("log file may lack its end", err) },
	})
	o.opening = append(o.opening, w.Opened())
	return w
}

// failures warns about log files that fail, once for each cause: a full disk makes those of all streams fail.
type failures struct {
	warn func(format string, args ...any)
	mu   sync.Mutex
	seen []string // causes
}

const fileFailed = "gave up a log file; its output goes to the console, as does that of other log files that fail for the same reason"

func (f *failures) add(what string, err error) {
	cause := innermost(err).Error()
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.seen, cause) {
		return
	}
	f.seen = append(f.seen, cause)
	f.warn("%s: %v", what, err)
}

// innermost returns the system's error, without the operation and the file's name.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// filter is a file for the lines of all workers that contain one of several texts.
type filter struct {
	texts [][]byte
	file  *spool.Writer
	users atomic.Int32 // streams that have not released it
}

// wants reports whether line is for the filter's file.
func (f *filter) wants(line []byte) bool {
	for _, text := range f.texts {
		if bytes.Contains(line, text) {
			return true
		}
	}
	return false
}

// release is called once by every stream. The last call closes the file.
func (f *filter) release() {
	if f.users.Add(-1) == 0 {
		f.file.Close()
	}
}
