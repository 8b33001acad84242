package launcher

import (
	"errors"
	"os"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// openPtys puts a pseudo terminal in the place of the pipe that is stdout of the workers that Spec.Pty names. If the system has none left,
// they keep their pipes.
func (s *Spec) openPtys(locals []int, ours, theirs []*os.File) {
	for i, local := range locals {
		if s.Pty == nil || !s.Pty(local) {
			continue
		}
		our, their, err := openPty()
		if err != nil {
			s.warn("local rank %d and those after it write to pipes, since there is no pseudo terminal for them (--pty): %v", local, err)
			return
		}
		closeAll([]*os.File{ours[2*i], theirs[2*i]})
		ours[2*i], theirs[2*i] = our, their
	}
}

// resize gives the workers' pseudo terminals the size of the terminal on which gorun shows their output, without what stands before lines.
func (g *Gang) resize() {
	screen, ok := g.spec.Stdout.(*os.File)
	if g.spec.Pty == nil || !ok {
		return
	}
	var size *unix.Winsize
	if control(screen, func(fd int) (err error) { size, err = unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); return err }) != nil {
		return // no terminal
	}
	for _, w := range g.present() {
		its, margin := *size, uint16(utf8.RuneCount(w.out.prefix.Load().plain))
		if its.Col > 2*margin {
			its.Col -= margin
		}
		_ = control(w.out.pipe, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &its) }) // fails for a pipe
	}
}

// control calls f with the descriptor of a file, which stays as it is.
func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	ctlErr := raw.Control(func(fd uintptr) { err = f(int(fd)) })
	return errors.Join(ctlErr, err)
}

// openPty opens a pseudo terminal that passes on bytes as they are, and becomes nobody's controlling terminal.
func openPty() (ours, theirs *os.File, err error) {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	slave, err := openSlave(master)
	if err != nil {
		_ = unix.Close(master)
		return nil, nil, err
	}
	return os.NewFile(uintptr(master), "worker"), os.NewFile(uintptr(slave), "worker"), nil
}

func openSlave(master int) (int, error) {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return 0, err
	}
	mode, err := unix.IoctlGetTermios(master, unix.TCGETS)
	if err != nil {
		return 0, err
	}
	mode.Oflag &^= unix.OPOST // which would add carriage returns
	mode.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(master, unix.TCSETS, mode); err != nil {
		return 0, err
	}
	// Not by its name, which may be another's in a container.
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return 0, errno
	}
	return int(slave), nil
}
