package main

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gorun/gorun"

// imports is the table of docs/architecture.md: what the packages of each row may import, by itself or through
// others, beside the standard library. A row ending in /... is every package below. Change it in a commit of its
// own, with the reason.
var imports = map[string][]string{
	"env":                       {},
	"env/addr":                  {},
	"env/auth/...":              {"env/auth/..."},
	"env/cgroup":                {},
	"env/keepalive":             {xSys},
	"comm/store":                {},
	"comm/store/...":            {"env/auth/...", "env/keepalive", "comm/store/...", "comm/internal/machine", "comm/internal/token", xSys},
	"comm/...":                  {"env", "env/addr", "env/auth/...", "env/cgroup", "env/keepalive", "comm/...", xSys, cbor},
	"rendezvous":                {},
	"rendezvous/rendezvoustest": {"rendezvous"},
	"rendezvous/reach":          {"rendezvous", xSys, etcdClient},
	"rendezvous/tie":            {"env/auth/...", "env/keepalive", xSys},
	"rendezvous/etcd":           {"rendezvous", "rendezvous/tie", "env/auth/...", "env/keepalive", xSys, etcdClient},
	"rendezvous/etcdstore":      {"comm/store", etcdClient},
	"rendezvous/embedded":       {"env/auth/...", "rendezvous", "rendezvous/reach", etcdServer},
	"launcher/topology":         {"env/cgroup", xSys},
	"launcher/proc":             {},
	"launcher/spool":            {xSys},
	"launcher/guard/...":        {"launcher/guard", "env/cgroup", "launcher/topology", "launcher/proc", xSys},
	"launcher":                  {"env/cgroup", "launcher/...", xSys, timberjack},
	"agent":                     {"env/cgroup", "env", "rendezvous", "launcher/...", xSys, timberjack, hclog},
	"cmd/gorun/internal/bench":  {"env/cgroup", "env/keepalive", "env", "env/addr", "env/auth/...", "comm/...", xSys, cbor},
	"cmd/gorun/internal/hosts":  {},
	"cmd/gorun/internal/drill":  {"env/cgroup", "env/keepalive", "cmd/gorun/internal/hosts", "env", "env/addr", "env/auth/...", "comm/...", "launcher/...", xSys, timberjack, cbor},
	"cmd/gorun/internal/cli":    {"env/cgroup", "env/keepalive", "cmd/gorun/internal/bench", "cmd/gorun/internal/drill", "cmd/gorun/internal/hosts", "env", "env/addr", "env/auth/...", "comm/...", "rendezvous", "launcher/...", "agent", xSys, timberjack, hclog, cobra, cbor},
}

// What is not ours, with what it brings.
const (
	xSys       = "golang.org/x/sys/..."
	timberjack = "github.com/DeRuina/timberjack|github.com/klauspost/compress/..."
	hclog      = "github.com/hashicorp/go-hclog|github.com/fatih/color|github.com/mattn/..."
	cobra      = "github.com/spf13/..."
	cbor       = "github.com/fxamacker/...|github.com/x448/..."
	etcdClient = "go.etcd.io/etcd/api/...|go.etcd.io/etcd/client/...|google.golang.org/...|golang.org/x/...|go.uber.org/...|" +
		"github.com/coreos/...|github.com/golang/protobuf/...|github.com/grpc-ecosystem/grpc-gateway/..."
	etcdServer = "github.com/...|go.etcd.io/...|go.opentelemetry.io/...|go.uber.org/...|go.yaml.in/...|golang.org/x/...|" +
		"google.golang.org/...|gopkg.in/...|k8s.io/...|sigs.k8s.io/..."
)

// A pkg is what go list says of a package.
type pkg struct {
	ImportPath     string
	Dir            string
	Standard       bool
	Deps           []string
	GoFiles        []string
	IgnoredGoFiles []string
}

// list returns the packages of the module, and those that they import.
func list(t *testing.T) (all map[string]pkg, ours []pkg) {
	t.Helper()
	// -e: a package that does not compile is the compiler's to complain about.
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-json=ImportPath,Dir,Standard,Deps,GoFiles,IgnoredGoFiles", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all = make(map[string]pkg)
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, ours
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
		if p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/") {
			ours = append(ours, p)
		}
	}
}

func TestImportPolicy(t *testing.T) {
	all, ours := list(t)
	checked := make(map[string]bool)
	for _, p := range ours {
		for row, allowed := range imports {
			if !matches(row, p.ImportPath) {
				continue
			}
			checked[row] = true
			for _, dep := range p.Deps {
				if all[dep].Standard || strings.HasPrefix(dep, "vendor/") || matchesAny(allowed, dep) {
					continue
				}
				t.Errorf("%s imports %s, which docs/architecture.md does not allow", p.ImportPath, dep)
			}
		}
	}
	for row := range imports {
		if !checked[row] {
			t.Errorf("there is no package %s", row)
		}
	}
}

// TestGuardIsLight: what imports these is not initialised before etcd's packages, or not soon.
func TestGuardIsLight(t *testing.T) {
	all, _ := list(t)
	reexec, ok := all[module+"/launcher/guard/reexec"]
	if !ok {
		t.Error("there is no such package")
	}
	for _, dep := range reexec.Deps {
		first, _, _ := strings.Cut(dep, "/")
		if slices.Contains([]string{"crypto", "log", "net", "regexp", "text", "vendor"}, first) {
			t.Errorf("the guard imports %s", dep)
		}
	}
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}

// matches reports whether an import path is that of a pattern: alternatives by |, "/..." for all below as well,
// relative to the module if the first element is no host.
func matches(pattern, path string) bool {
	for p := range strings.SplitSeq(pattern, "|") {
		first, _, _ := strings.Cut(p, "/")
		if !strings.Contains(first, ".") {
			p = module + "/" + p
		} else if strings.HasPrefix(path, module+"/") { // ours are never meant by a host
			continue
		}
		prefix, below := strings.CutSuffix(p, "/...")
		if path == prefix || below && strings.HasPrefix(path, prefix+"/") {
			return true
		}
	}
	return false
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"env", module + "/env", true},
		{"env", module + "/envy", false},
		{"env", module + "/env/internal", false},
		{"comm/...", module + "/comm", true},
		{"comm/...", module + "/comm/internal/plan", true},
		{"comm/...", module + "/community", false},
		{xSys, "golang.org/x/sys/unix", true},
		{hclog, "github.com/mattn/go-isatty", true},
		{hclog, "github.com/fatih/colors", false},
		{etcdServer, "github.com/prometheus/client_golang/prometheus", true},
		{etcdServer, module + "/agent", false},
	} {
		if got := matches(c.pattern, c.path); got != c.want {
			t.Errorf("matches(%q, %q) = %t", c.pattern, c.path, got)
		}
	}
}

// TestPackageComments: every package has one, in one file, and it names the package unless that is a program.
func TestPackageComments(t *testing.T) {
	_, ours := list(t)
	for _, p := range ours {
		var documented []string
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			if file.Doc == nil || strings.HasSuffix(name, "_test.go") {
				continue
			}
			documented = append(documented, name)
			text := file.Doc.Text()
			if file.Name.Name != "main" && !strings.HasPrefix(text, "Package "+file.Name.Name+" ") {
				t.Errorf("%s: the comment of %s begins %.30q", p.ImportPath, name, text)
			}
		}
		if len(p.GoFiles) > 0 && len(documented) != 1 { // a package may be tests only
			t.Errorf("%s has package comments in %q, want one", p.ImportPath, documented)
		}
	}
}

var promise = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)

// TestNoPromises: what is not done is an issue, not a comment.
func TestNoPromises(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if promise.MatchString(line) {
				t.Errorf("%s:%d: %s", path, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTopLevel: the tree has these folders, and no others.
func TestTopLevel(t *testing.T) {
	list, err := os.ReadDir(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if d.IsDir() && !strings.HasPrefix(d.Name(), ".") && !slices.Contains([]string{"agent", "cmd", "comm", "docs", "env", "launcher", "rendezvous", "scripts"}, d.Name()) {
			t.Errorf("folder %s: a package for several of these folders belongs below env", d.Name())
		}
	}
}
