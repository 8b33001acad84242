package launch

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gorun/gorun/env/manager"
)

// A Shell is the command with which a host is reached, such as ssh. It runs a command there, and carries its stdin, stdout and stderr.
type Shell struct {
	Words   []string      // the command and its first arguments
	Connect time.Duration // limits how long ssh tries
}

// isSSH reports whether the command understands ssh's options.
func (s Shell) isSSH() bool { return filepath.Base(s.Words[0]) == "ssh" }

// Argv returns the command line that runs command on a host. The user's words come first: ssh believes the first value of an option.
func (s Shell) Argv(h manager.Host, command string) []string {
	argv := append([]string(nil), s.Words...)
	if s.isSSH() {
		seconds := max(1, int(s.Connect.Seconds()))
		argv = append(argv, "-T", "-oBatchMode=yes", fmt.Sprintf("-oConnectTimeout=%d", seconds), "-oServerAliveInterval=5", "-oServerAliveCountMax=3")
	}
	if h.User != "" {
		argv = append(argv, "-l", h.User)
	}
	return append(argv, h.Name, command)
}

// Check returns an error if the command is not on this machine.
func (s Shell) Check() error {
	if _, err := exec.LookPath(s.Words[0]); err != nil {
		return fmt.Errorf("no program %s on this machine: install it, or name another one with --rsh", strconv.Quote(s.Words[0]))
	}
	return nil
}

// plainPath matches paths that mean the same in every shell without quotes.
var plainPath = regexp.MustCompile(`^(~?/)?[A-Za-z0-9_.+@,:-]+(/[A-Za-z0-9_.+@,:-]+)*$`)

// CheckPath returns an error for a path of gorun on the hosts that a shell there could read in another way.
func CheckPath(path string) error {
	if !plainPath.MatchString(path) || strings.HasPrefix(path, "-") {
		return fmt.Errorf("%s: want a path of letters, digits and ./_+@,:- , which every shell leaves alone", strconv.Quote(path))
	}
	return nil
}

// ProxyCommand is what a host runs. sh, bash, tcsh, fish and others understand it, and it contains nothing of the job.
func ProxyCommand(path string) string { return "exec " + path + " agent" }
