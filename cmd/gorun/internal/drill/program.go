package drill

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ProgramCommand is the gorun command that becomes a worker of the user's own program. Its arguments are those of Become.
const ProgramCommand = "drill-program"

// Become reports to the drill, which listens at socket, that a worker has started, goes to a directory, and executes the program. The
// connection stays open until the worker and all that it has started have ended.
func Become(socket, node, dir string, program []string) error {
	path, err := exec.LookPath(program[0])
	if err != nil {
		return err
	}
	d, err := dialDrill(socket, node)
	if err != nil {
		return err
	}
	file, err := d.conn.(*net.UnixConn).File()
	if err != nil {
		return err
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETFD, 0); err != nil { // it is to outlive exec
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, program, os.Environ()))
}

// linePause is how long a round must have lasted before a line counts as progress in it: a line of the round before may come late.
const linePause = 100 * time.Millisecond

// wrote records that a worker has written a line. It counts as progress of all workers, because usually only one of
// them writes.
func (o *observer) wrote(at time.Time) {
	list := o.in(o.newest())
	for _, k := range list {
		if at.Sub(k.since) < linePause {
			return
		}
	}
	for _, k := range list {
		if !k.gone {
			o.follow(at, k, computed)
			o.fail(k.compute(0, 0))
		}
	}
}

// joined records that a node is in a round. Its workers that are alive then live on in that round. They do not report that themselves.
func (o *observer) joined(at time.Time, node int, j joining) {
	for _, k := range o.live(node) {
		if k.Round >= j.round || !o.alive(k) {
			continue
		}
		next := k.inRound(place{
			Node: node, Local: k.Local, Pid: k.Pid, Round: j.round, Rank: j.groupRank*o.nproc + k.Local, World: j.nodes * o.nproc, Restarts: k.Restarts,
		})
		o.receive(at, next, message{Kind: rejoined})
	}
}

// livedOn returns how many workers the fault did not hit on the nodes of the newest round, and how many of them have come into that round.
func (o *observer) livedOn() (all, on int) {
	newest := o.newest()
	for _, k := range o.in(o.fault.before) {
		if o.fault.hits == nil || o.fault.hits(k) {
			continue
		}
		all++
		if k.last().Round == newest {
			on++
		}
	}
	return all, on
}
