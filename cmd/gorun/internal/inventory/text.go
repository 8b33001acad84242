package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gorun/gorun/agent"
)

const unknown = "not known"

// Text returns the findings for people.
func (f *Findings) Text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-15s %s\n", name, agent.Printable(fmt.Sprintf(format, args...)))
	}
	line("gorun", "%s, %s, %s/%s", f.Gorun.Version, f.Gorun.Go, f.Gorun.OS, f.Gorun.Arch)
	line("host", "%s, kernel %s", f.Host, cmp.Or(f.Kernel, unknown))
	line("CPUs", "%d usable, of %s: %s, %s, %s", f.CPUs.Usable, cmp.Or(f.CPUs.Allowed, unknown),
		counted(f.CPUs.Cores, "core"), counted(f.CPUs.Sockets, "socket"), counted(f.CPUs.NUMANodes, "NUMA node"))
	line("GPUs", "%s", f.gpus())
	line("memory", "%s, %s available%s", size64(f.Memory.Total), size64(f.Memory.Available), below("; the cgroup allows %s", f.Memory.Limit, size64))
	line("/dev/shm", "%s, %s free", size64(f.Memory.Shared), size64(f.Memory.SharedFree))
	line("huge pages", "%s", cmp.Or(f.Memory.HugePages, unknown))
	files := orUnlimited(f.Limits.OpenFiles, decimal)
	if slices.ContainsFunc(f.Problems, func(p string) bool { return strings.HasPrefix(p, openFilesLimit+": ") }) {
		files = unknown
	}
	line("open files", "%s%s", files, below(", at most %s", f.Limits.MostOpenFiles, decimal))
	line("processes", "%s%s", orUnlimited(f.Limits.Processes, decimal), below("; the cgroup allows %s", f.Limits.CgroupProcesses, decimal))
	line("locked memory", "%s", orUnlimited(f.Limits.LockedMemory, size64))
	if f.Network.Address.IsValid() {
		line("address", "%v%s", f.Network.Address, map[bool]string{true: "; " + f.Network.Doubt}[f.Network.Doubt != ""])
	}
	for _, i := range f.Network.Interfaces {
		state := fmt.Sprint(i.Addresses)
		switch {
		case !i.Up:
			state = "down"
		case len(i.Addresses) == 0:
			state = "no address"
		}
		line("interface", "%s: %s", i.Name, strings.Trim(state, "[]"))
	}
	if f.Manager != "" {
		line("started by", "%s", f.Manager)
	}
	for _, p := range f.Problems {
		line("not known", "%s", p)
	}
	return b.String()
}

func (f *Findings) gpus() string {
	if len(f.GPUs) == 0 && f.Visible.Count == 0 {
		return "none"
	}
	var vendors []string
	number := make(map[string]int)
	for _, g := range f.GPUs {
		if number[g.Vendor]++; number[g.Vendor] == 1 {
			vendors = append(vendors, g.Vendor)
		}
	}
	for i, v := range vendors {
		vendors[i] = fmt.Sprintf("%d of %s", number[v], v)
	}
	return fmt.Sprintf("%s; workers see %d (%s)", cmp.Or(strings.Join(vendors, ", "), unknown), f.Visible.Count, cmp.Or(f.Visible.Variable, unknown))
}

func orUnlimited(n uint64, format func(uint64) string) string {
	if n == 0 {
		return "no limit"
	}
	return format(n)
}

// below returns text about a limit, if there is one.
func below(text string, limit uint64, format func(uint64) string) string {
	if limit == 0 {
		return ""
	}
	return fmt.Sprintf(text, format(limit))
}

func decimal(n uint64) string { return fmt.Sprint(n) }

// size64 returns a number of bytes in a unit that keeps it short; 0 is not known.
func size64(n uint64) string {
	switch {
	case n == 0:
		return unknown
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
