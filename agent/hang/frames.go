package hang

import (
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

var (
	// faulthandler's: File "train.py", line 7 in step
	faultFrame = regexp.MustCompile(`File "([^"\n]*)", line (\d+) in (\S+)`)
	// py-spy's: step (train.py:7)
	spyFrame = regexp.MustCompile(`(?m)^ +(\S+) \(([^()\n]*:\d+)\)$`)
)

const (
	maxFrames  = 5     // of a stack in one line
	innerFirst = " < " // between them
)

// pythonStack is the functions of the current thread, the innermost first, in what Python's faulthandler writes.
func pythonStack(stacks string) string {
	if _, current, ok := strings.Cut(stacks, "\nCurrent thread "); ok {
		stacks = current
	}
	stacks, _, _ = strings.Cut(stacks, "\n\n") // the next thread
	var frames []string
	for _, m := range faultFrame.FindAllStringSubmatch(stacks, maxFrames) {
		frames = append(frames, m[3]+" ("+path.Base(m[1])+":"+m[2]+")")
	}
	return strings.Join(frames, innerFirst)
}

// pySpyStack is the same for the main thread in what py-spy writes.
func pySpyStack(stacks string) string {
	for thread := range strings.SplitSeq(stacks, "\nThread ") {
		if strings.Contains(thread, "MainThread") {
			stacks = thread
			break
		}
	}
	var frames []string
	for _, m := range spyFrame.FindAllStringSubmatch(stacks, maxFrames) {
		frames = append(frames, m[1]+" ("+path.Base(m[2])+")")
	}
	return strings.Join(frames, innerFirst)
}
