package launcher

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// output is where the streams of a gang lead: the console and the files.
type output struct {
	spec     *Spec
	console  *console
	failures *failures
	filters  map[Std]*filter // none for a stream without filters
}

func newOutput(s *Spec) *output {
	o := &output{spec: s, console: newConsole(s), failures: &failures{warn: s.warn}, filters: map[Std]*filter{}}
	o.addFilter(Stdout, s.Logs.StdoutFilters)
	o.addFilter(Stderr, s.Logs.StderrFilters)
	return o
}

func (o *output) addFilter(which Std, texts []string) {
	if len(texts) == 0 || o.spec.Logs.Dir == "" {
		return
	}
	f := &filter{failures: o.failures, users: len(o.spec.Workers)}
	for _, text := range texts {
		f.texts = append(f.texts, []byte(text))
	}
	f.file = o.open(o.spec.Logs.Dir, "filtered_"+which.file())
	o.filters[which] = f
}

// stream prepares one stream of one worker.
func (o *output) stream(localRank int, which Std, pipe *os.File) *stream {
	w := o.spec.Workers[localRank]
	s := newStream(which, pipe, o.route(localRank, which), o)
	s.prefix, s.plain = paint(w.Prefix, w.Rank, o.spec.Color), []byte(w.Prefix)
	return s
}

// streamRoute says where one stream of one worker goes.
type streamRoute struct {
	file    io.WriteCloser // nil: no file
	console bool
	filter  *filter // nil: none
}

// route makes the directory of a local rank and opens the file of one of its streams, if it has one.
func (o *output) route(localRank int, which Std) streamRoute {
	l, muted := o.spec.Logs, o.spec.Workers[localRank].Mute
	teed := l.Tee.For(localRank)&which != 0
	redirected := l.Redirect.For(localRank)&which != 0 && !teed
	r := streamRoute{filter: o.filters[which], console: !muted && !redirected}
	if l.Dir == "" {
		r.console = !muted && (!redirected || !l.Discard)
		return r
	}
	dir := filepath.Join(l.Dir, strconv.Itoa(localRank))
	if !teed && !redirected {
		o.mkdir(dir)
	} else if r.file = o.open(dir, which.file()); r.file == nil {
		r.console = true
	}
	return r
}

// mkdir makes a directory of log files.
func (o *output) mkdir(dir string) bool {
	err := os.MkdirAll(dir, 0o755)
	if err != nil {
		o.failures.add(givenUp, err)
	}
	return err == nil
}

// open opens a log file, in a directory that it makes if it is missing. nil: it cannot.
func (o *output) open(dir, name string) io.WriteCloser {
	if !o.mkdir(dir) {
		return nil
	}
	file, err := openLogFile(filepath.Join(dir, name), o.spec.Logs.MaxSize, o.spec.Logs.Keep)
	if err != nil {
		o.failures.add(givenUp, err)
		return nil
	}
	return file
}

// failures warns of log files that fail, once for each cause: a full disk fails those of all streams.
type failures struct {
	warn func(format string, args ...any)
	mu   sync.Mutex
	seen map[string]bool // by cause
}

const givenUp = "log file given up, its output goes to the console, as does that of others that fail so"

func (f *failures) add(what string, err error) {
	cause := err
	for next := errors.Unwrap(cause); next != nil; next = errors.Unwrap(cause) {
		cause = next // in the end without the file's name
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen[cause.Error()] {
		return
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[cause.Error()] = true
	f.warn("%s: %v", what, err)
}
