package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/gorun/gorun/scripts/internal/peers"
)

// A library is what contenders need, in Debian's packages.
type library struct {
	name       string
	packages   []string // Debian's
	missing    func() bool
	contenders func(s site) ([]contender, error)
}

var libraries = []library{
	{"comm", nil, func() bool { return false }, ours},
	{"Open MPI", []string{"openmpi-bin", "libopenmpi-dev", "gcc"}, lacks("mpirun.openmpi", "mpicc.openmpi", "gcc"), openMPI},
	{"MPICH", []string{"mpich", "libmpich-dev", "gcc"}, lacks("mpiexec.hydra", "mpicc.mpich", "gcc"), mpich},
	{"gloo", []string{"python3-torch"}, func() bool { return peers.Python() == "" }, gloo},
}

// lacks reports whether one of the commands is missing.
func lacks(commands ...string) func() bool {
	return func() bool {
		return slices.ContainsFunc(commands, func(name string) bool {
			_, err := exec.LookPath(name)
			return err != nil
		})
	}
}

// install installs missing Debian packages if this process is root. The caller checks later whether it worked.
func install() {
	var packages []string
	for _, l := range libraries {
		if l.missing() {
			packages = append(packages, l.packages...)
		}
	}
	if _, err := exec.LookPath("apt-get"); err != nil || len(packages) == 0 || os.Getuid() != 0 {
		return
	}
	fmt.Fprintln(os.Stderr, "installing", strings.Join(packages, " "))
	for _, args := range [][]string{{"update", "-qq"}, append([]string{"install", "-y", "-qq", "--no-install-recommends"}, packages...)} {
		cmd := exec.Command("apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "apt-get:", err)
		}
	}
}
