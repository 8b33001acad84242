package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An interpreter is a process of Python which has imported what workers need (see launcher/preload). A gang has one at a time.
//
// It and the guard send each other words over a socket: four bytes with the length, and then the words with a NUL between them.
// The guard sends, and the interpreter answers:
//
//	import PID MODULE...      PID is the guard's                 importing MODULE, for each; then ready, or failed WHY
//	check                                                        ready, or changed FILE
//	fork CPUS NODES N WORD... N arguments, then the environment  forked PID, or refused WHY
//
// With fork it sends files: that from which the worker reads a byte before it begins, and the worker's stdin, stdout and stderr.
type interpreter struct {
	pid       int
	socket    *os.File
	words     chan []string // what it sends, a message at a time; closed at its end
	importing string        // the module that it imports, or the last one
	state     readiness
	ends      time.Time // when it has to have imported all, or answered; zero: no limit
	status    *syscall.WaitStatus
	why       string // why it is over or useless
}

// A readiness says how far an interpreter has come.
type readiness int

const (
	loading readiness = iota // what it is to import
	ready                    // it can fork workers
	over                     // it has been killed, or is about to be: another one may take its place
	useless                  // it is over, for a reason that those that follow would have, too
)

// noInterpreter returns one that has failed.
func noInterpreter(why string) *interpreter { return &interpreter{state: useless, why: why} }

const (
	// roomVariable is a variable of blanks, which the interpreter begins with. A worker writes its own variables there: /proc/PID/environ
	// shows that memory.
	roomVariable = "_ROOM"
	room         = 4 << 10
	// maxWords is how many bytes an interpreter may send at once.
	maxWords = 64 << 10
	// bootstrapPath is where the interpreter finds the bootstrap: descriptor 4. Its socket is descriptor 3.
	bootstrapPath = "/proc/self/fd/4"
	pythonPath    = "PYTHONPATH"
)

// newInterpreter starts an interpreter. It begins as a worker does, with the same arguments: so it is what the worker would be when it forks
// one. Python imports the module sitecustomize of the bootstrap before it reads the program, which is where the interpreter stays.
func newInterpreter(p *Preload, bootstrap, output int) *interpreter {
	if p.Impossible != "" {
		return noInterpreter(p.Impossible)
	}
	argv, modules := unpack(p.Program), unpack(p.Modules)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return noInterpreter(err.Error())
	}
	defer func() { _ = unix.Close(pair[1]) }()
	path := bootstrapPath
	env := []string{roomVariable + "=" + strings.Repeat(" ", room)}
	for _, v := range unpack(p.Env) {
		switch old, ok := strings.CutPrefix(v, pythonPath+"="); {
		case ok && old != "": // an empty one is none
			path += ":" + old
		case !ok:
			env = append(env, v)
		}
	}
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env:   append(env, pythonPath+"="+path),
		Files: []uintptr{0, uintptr(output), uintptr(output), uintptr(pair[1]), uintptr(bootstrap)},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		_ = unix.Close(pair[0])
		return noInterpreter(err.Error())
	}
	limit := unix.NsecToTimeval(int64(answerTimeout))
	_ = unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit) // the descriptor is one of a socket
	i := &interpreter{pid: pid, socket: os.NewFile(uintptr(pair[0]), "interpreter"), words: make(chan []string), importing: modules[0],
		ends: time.Now().Add(p.Limit)}
	go i.receive()
	if err := i.send(append([]string{"import", strconv.Itoa(os.Getpid())}, modules...), nil); err != nil {
		i.fail(err.Error())
	}
	return i
}

// receive reads what the interpreter sends.
func (i *interpreter) receive() {
	defer close(i.words)
	for {
		var size [4]byte
		if _, err := io.ReadFull(i.socket, size[:]); err != nil || binary.BigEndian.Uint32(size[:]) > maxWords {
			return
		}
		text := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(i.socket, text); err != nil {
			return
		}
		i.words <- strings.Split(string(text), "\x00")
	}
}

// received returns a channel that gets what the interpreter sends, and is closed when it ends; nil: there is none, or it is over.
func (i *interpreter) received() <-chan []string {
	if i.ended() {
		return nil
	}
	return i.words
}

func (i *interpreter) deadline() time.Time {
	if i.ended() {
		return time.Time{}
	}
	return i.ends
}

func (i *interpreter) ended() bool { return i == nil || i.state >= over }

// ask sends a word. The answer comes through received.
func (i *interpreter) ask(word string) {
	i.ends = time.Now().Add(answerTimeout)
	_ = i.send([]string{word}, nil) // or it has ended, which received says
}

// call sends words with files, and waits for the answer.
func (i *interpreter) call(words []string, files []int) (answer []string, err error) {
	if err := i.send(words, files); err != nil {
		return nil, fmt.Errorf("its interpreter: %w", err)
	}
	late := time.After(answerTimeout)
	for {
		select {
		case answer, ok := <-i.words:
			if !ok {
				return nil, errors.New("its interpreter has ended")
			}
			if len(answer) == 2 && (answer[0] == "forked" || answer[0] == "refused") { // and not to a check before
				return answer, nil
			}
		case <-late:
			return nil, fmt.Errorf("its interpreter has not answered within %v", answerTimeout)
		}
	}
}

func (i *interpreter) send(words []string, files []int) error {
	text := strings.Join(words, "\x00")
	message := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	var rights []byte
	if files != nil {
		rights = unix.UnixRights(files...)
	}
	for len(message) > 0 {
		n, err := unix.SendmsgN(int(i.socket.Fd()), message, rights, nil, unix.MSG_NOSIGNAL)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return fmt.Errorf("takes nothing within %v", answerTimeout)
		case err != nil:
			return err
		}
		message, rights = message[n:], nil
	}
	return nil
}

// fail ends the interpreter for a reason that others would have, too.
func (i *interpreter) fail(why string) {
	i.end()
	i.why, i.state = why, useless
}

// end kills the interpreter, and what works for it. Its loss harms no worker.
func (i *interpreter) end() {
	if i.ended() {
		return
	}
	i.state = over
	i.kill()
	_ = unix.Shutdown(int(i.socket.Fd()), unix.SHUT_RDWR) // so that receive ends
	go func() {
		for range i.words {
		}
		_ = i.socket.Close()
	}()
}

// kill kills the interpreter, unless it has been waited for: its number may be another process's then.
func (i *interpreter) kill() {
	if i.status == nil {
		_ = syscall.Kill(-i.pid, syscall.SIGKILL)
	}
}

// collected notes that a process has been waited for, if it is the interpreter.
func (i *interpreter) collected(pid int, status syscall.WaitStatus) {
	if i != nil && pid == i.pid {
		i.kill() // what it has started: as long as there is anything, the group has this number
		i.status = &status
	}
}

// wait kills the interpreter, and waits for its end, but not for long: it may be blocked in the kernel. It says how it ended.
func (i *interpreter) wait() string {
	if i == nil || i.pid == 0 {
		return ""
	}
	i.kill()
	for end := time.Now().Add(time.Second); i.status == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		var status syscall.WaitStatus
		if pid, _ := syscall.Wait4(i.pid, &status, syscall.WNOHANG, nil); pid == i.pid {
			i.collected(pid, status)
		}
	}
	if i.status != nil && i.status.Exited() {
		return "exited with code " + strconv.Itoa(i.status.ExitStatus())
	}
	return "ended"
}

// numbers joins numbers with commas.
func numbers(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}
