package attack

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// somePorts is the greatest number of ports of a job on three nodes, and someFiles the least number of descriptors that a process
// can have.
const somePorts, someFiles = 24, 16_000

// A command is what the command line asks for.
type command struct {
	kind      string        // a key of Attacks
	strangers int           // at each port
	pause     time.Duration // see Start
	processes int           // that share the strangers
	share     int           // number of this process, from 0; -1: it starts the others
	jobs      []int         // pids
}

// Main floods the ports of processes, whose pids are the arguments, and of their descendants, until it gets SIGTERM. Since a
// process may have only so many descriptors, several processes share the strangers.
func Main() {
	var c command
	flag.IntVar(&c.strangers, "n", 10_000, "strangers at each port")
	flag.StringVar(&c.kind, "attack", "silent", "what they do: "+strings.Join(slices.Sorted(maps.Keys(Attacks)), ", "))
	flag.DurationVar(&c.pause, "pause", 0, "how long one that was dropped stays away")
	flag.IntVar(&c.processes, "processes", 0, "how many processes share them (as many as they take)")
	flag.IntVar(&c.share, "share", -1, "internal")
	flag.Parse()
	if c.processes <= 0 {
		c.processes = 1 + c.strangers*somePorts/someFiles
	}
	for _, arg := range flag.Args() {
		pid, err := strconv.Atoi(arg)
		if err == nil {
			_, err = os.Stat("/proc/" + arg)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "flood: there is no process %q\n", arg)
			os.Exit(2)
		}
		c.jobs = append(c.jobs, pid)
	}
	if len(c.jobs) == 0 && c.share < 0 {
		fmt.Fprintln(os.Stderr, "flood: whose ports? Give the pid of one process or more")
		flag.Usage()
		os.Exit(2)
	}
	if c.strangers < 1 || c.pause < 0 {
		fmt.Fprintf(os.Stderr, "flood: %d strangers, who stay away for %v: give -n a number above 0, and -pause a time of 0 or more\n", c.strangers, c.pause)
		os.Exit(2)
	}
	err := fmt.Errorf("there is no attack %q", c.kind)
	if does, ok := Attacks[c.kind]; ok && c.share >= 0 {
		err = c.flood(does)
	} else if ok {
		err = c.lead()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		os.Exit(2)
	}
}

// flood reads ports from stdin, one in each line, and sends strangers to them until stdin ends.
func (c *command) flood(does Attack) error {
	debug.SetGCPercent(1000) // marking so many goroutines is most of the work
	each := c.strangers / c.processes
	f := Start(does, c.pause)
	f.first = c.share * each
	defer f.Stop()
	go func() {
		for range time.Tick(time.Second) {
			fmt.Println(f.Held.Load(), f.Calls.Load())
		}
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		network, address, _ := strings.Cut(lines.Text(), " ")
		f.At(Port{network, address}, each)
	}
	return nil
}

// lead starts the processes that flood, and sends them the ports.
func (c *command) lead() error {
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	counts := make(chan [3]int64)
	var inputs []io.WriteCloser
	var others []*exec.Cmd
	defer func() {
		for i, p := range others {
			_, _ = inputs[i].Close(), p.Wait() // its input ends it
		}
	}()
	for share := range c.processes {
		p := exec.Command(exe, "-n", strconv.Itoa(c.strangers), "-attack", c.kind, "-pause", c.pause.String(), "-processes", strconv.Itoa(c.processes), "-share", strconv.Itoa(share))
		p.Args[0], p.Stderr = os.Args[0], os.Stderr
		p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
		in, err := p.StdinPipe()
		if err != nil {
			return err
		}
		out, err := p.StdoutPipe()
		if err != nil {
			return err
		}
		if err := p.Start(); err != nil {
			return err
		}
		inputs, others = append(inputs, in), append(others, p)
		go func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				var held, calls int64
				_, _ = fmt.Sscan(lines.Text(), &held, &calls)
				counts <- [3]int64{int64(share), held, calls}
			}
		}()
	}
	held, calls := make([]int64, c.processes), make([]int64, c.processes)
	seen := make(map[Port]bool)
	tell := time.NewTicker(time.Second)
	for look := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-look.C:
			for _, p := range c.news(seen) {
				for _, in := range inputs {
					_, _ = fmt.Fprintln(in, p.Network, p.Address)
				}
			}
		case count := <-counts:
			held[count[0]], calls[count[0]] = count[1], count[2]
		case <-tell.C:
			fmt.Printf("%d are open at %d ports, of %d until now\n", sum(held), len(seen), sum(calls))
		case <-end:
			return nil
		}
	}
}

// news returns the ports that are new.
func (c *command) news(seen map[Port]bool) (ports []Port) {
	for _, pid := range c.jobs {
		for _, p := range Ports(pid) {
			if !seen[p] {
				seen[p] = true
				ports = append(ports, p)
			}
		}
	}
	return ports
}

func sum(list []int64) (total int64) {
	for _, n := range list {
		total += n
	}
	return total
}
