package proc

import (
	"path"
	"slices"
	"strings"
)

// Field returns what follows a name in the line of a text of the kernel that begins with it, without blanks around it; empty: there is none.
func Field(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Cgroup is the cgroup of a process as one mount shows it.
type Cgroup struct {
	V1      bool     // of version 1, with the controller that was asked for; else version 2
	Dirs    []string // absolute; the group's own, then those above it, up to the mount point; never empty
	Outside bool     // the mount shows another part of the hierarchy, or the group is not known; Dirs is its top
}

// Cgroups returns the cgroups of a process: those of version 1 with a controller, such as "memory", followed by those of
// version 2, as they are in the file system. A machine may have both, and each may be mounted several times; the order is
// then that of mountinfo. cgroup and mountinfo are the contents of these files in /proc/self. Cgroups ignores malformed lines.
func Cgroups(cgroup, mountinfo, controller string) []Cgroup {
	var v1, v2 []Cgroup
	own1, own2 := paths(cgroup, controller)
	for line := range strings.Lines(mountinfo) {
		// id parent device root point options [tags] - type source superblock-options
		before, after, _ := strings.Cut(line, " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if len(where) < 5 || len(what) < 3 {
			continue
		}
		root, point := blanks.Replace(where[3]), blanks.Replace(where[4])
		switch {
		case what[0] == "cgroup" && contains(what[2], controller):
			dirs, ok := seen(own1, root, point)
			v1 = append(v1, Cgroup{V1: true, Dirs: dirs, Outside: !ok})
		case what[0] == "cgroup2":
			dirs, ok := seen(own2, root, point)
			v2 = append(v2, Cgroup{Dirs: dirs, Outside: !ok})
		}
	}
	return append(v1, v2...)
}

// paths returns the paths of a process's groups in their hierarchies, or "" for an unknown group.
func paths(cgroup, controller string) (v1, v2 string) {
	for line := range strings.Lines(cgroup) {
		id, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":") // "4:cpu,memory:/job", "0::/job"
		controllers, group, _ := strings.Cut(rest, ":")
		switch {
		case id == "0" && controllers == "":
			v2 = group
		case contains(controllers, controller):
			v1 = group
		}
	}
	return v1, v2
}

// blanks undoes the kernel's escapes for blanks in paths.
var blanks = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// seen returns the directories of a group and of those above it, if the group root is mounted at point. If the
// group is not below root, ok is false: the process may be in another namespace than the mount, and the path of its
// group may begin with "/..".
func seen(group, root, point string) (dirs []string, ok bool) {
	top := path.Join("/", point)
	below, ok := strings.CutPrefix(group+"/", strings.TrimSuffix(root, "/")+"/")
	below = "/" + strings.TrimSuffix(below, "/")
	if !ok || group == "" || path.Clean(below) != below {
		return []string{top}, false
	}
	for ; below != "/"; below = path.Dir(below) {
		dirs = append(dirs, path.Join(top, below))
	}
	return append(dirs, top), true
}

func contains(list, option string) bool {
	return slices.Contains(strings.Split(list, ","), option)
}
