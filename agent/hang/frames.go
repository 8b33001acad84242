package hang

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
)

// goFrame is the place in the program where the main goroutine is, or else the first one that is in the program: not in the runtime, the
// standard library or package comm.
func goFrame(stacks string) string {
	first := ""
	for g := range strings.SplitSeq(stacks, "\n\n") {
		lines := strings.Split(g, "\n")
		frame := ""
		for i := 1; i+1 < len(lines) && frame == ""; i += 2 {
			frame = ownFrame(lines[i], lines[i+1])
		}
		if strings.HasPrefix(g, "goroutine 1 ") && frame != "" {
			return frame
		}
		if first == "" && !strings.Contains(g, "\ncreated by github.com/gorun/gorun/") {
			first = frame
		}
	}
	return first
}

// ownFrame is one frame of a goroutine, if it is the program's.
func ownFrame(call, at string) string {
	name, _, _ := strings.Cut(call, "(")
	if method, _, ok := strings.Cut(call, ".("); ok { // of a pointer: pkg.(*T).Method(args)
		name = method + call[len(method):]
		if end := strings.LastIndexByte(name, '('); end > 0 {
			name = name[:end]
		}
	}
	dir, _ := path.Split(name)
	domain, _, _ := strings.Cut(name, "/")
	isStandard := !strings.Contains(domain, ".") || dir == "" && !strings.HasPrefix(name, "main.")
	switch {
	case strings.HasPrefix(call, "created by "), strings.HasPrefix(call, "github.com/gorun/gorun/comm"):
		return ""
	case isStandard && !strings.HasPrefix(name, "main."):
		return ""
	}
	file := strings.TrimSpace(at)
	file, _, _ = strings.Cut(file, " +0x")
	return name + " (" + path.Base(file) + ")"
}

// A frame is a function of Python in which a thread is.
type frame struct {
	function, path, line string
}

var (
	// faulthandler's: File "train.py", line 7 in step
	faultFrame = regexp.MustCompile(`File "(?P<path>[^"\n]*)", line (?P<line>\d+) in (?P<function>\S+)`)
	// py-spy's: step (train.py:7)
	spyFrame = regexp.MustCompile(`(?m)^ +(?P<function>\S+) \((?P<path>[^()\n]*):(?P<line>\d+)\)$`)
	// where calls of torch are that wait for other ranks
	waitingFile = regexp.MustCompile(`(^|/)torch/(distributed|autograd|nn/parallel)/`)
	// a line of the program that waits for what torch has started: the method is one of C++, which has no frame
	waitingLine = regexp.MustCompile(`\.wait\(`)
)

const (
	maxFrames  = 5     // of a stack in one line
	innerFirst = " < " // between them
)

// pythonFrames returns the frames of the current thread, the innermost first, in what Python's faulthandler writes.
func pythonFrames(stacks string) []frame {
	if _, current, ok := strings.Cut(stacks, "\nCurrent thread "); ok {
		stacks = current
	}
	stacks, _, _ = strings.Cut(stacks, "\n\n") // the next thread
	return framesIn(stacks, faultFrame)
}

// pySpyFrames is the same for the main thread in what py-spy writes.
func pySpyFrames(stacks string) []frame {
	for thread := range strings.SplitSeq(stacks, "\nThread ") {
		if strings.Contains(thread, "MainThread") {
			stacks = thread
			break
		}
	}
	return framesIn(stacks, spyFrame)
}

func framesIn(stacks string, form *regexp.Regexp) (frames []frame) {
	function, path, line := form.SubexpIndex("function"), form.SubexpIndex("path"), form.SubexpIndex("line")
	for _, m := range form.FindAllStringSubmatch(stacks, maxFrames) {
		frames = append(frames, frame{m[function], m[path], m[line]})
	}
	return frames
}

// inOneLine is the functions of a stack: "step (train.py:7) < main (train.py:12)".
func inOneLine(frames []frame) string {
	var parts []string
	for _, f := range frames {
		parts = append(parts, f.function+" ("+path.Base(f.path)+":"+f.line+")")
	}
	return strings.Join(parts, innerFirst)
}

// areWaiting reports whether frames are those of a thread of pid in a call of torch that waits for other ranks.
func areWaiting(pid int, frames []frame) bool {
	return len(frames) > 0 && (waitingFile.MatchString(frames[0].path) || waitingLine.MatchString(frames[0].source(pid)))
}

const longestSource = 4 << 20 // bytes of a file that are read

// source is the line of the program where f is, as pid sees its files; empty: it cannot be read.
func (f frame) source(pid int) string {
	of := "root"
	if !path.IsAbs(f.path) {
		of = "cwd"
	}
	name := fmt.Sprintf("/proc/%d/%s/%s", pid, of, f.path)
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > longestSource {
		return ""
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	n, lines := 0, strings.Split(string(text), "\n")
	if _, err := fmt.Sscan(f.line, &n); err != nil || n < 1 || n > len(lines) {
		return ""
	}
	return lines[n-1]
}
