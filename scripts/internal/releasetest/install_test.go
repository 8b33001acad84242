package releasetest_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var installs = flag.Bool("install", false, "run go install as on a new machine: it unpacks every module and compiles gorun")

// TestInstall: the Go command accepts what is committed here as a module. With -install, go install gets gorun with an empty module cache,
// and the binary knows its commit. A module proxy is a tree of files; here, the modules that gorun needs come from this machine's cache.
func TestInstall(t *testing.T) {
	const module = "github.com/gorun/gorun"
	t.Setenv("TZ", "UTC") // for git's format-local
	commit := strings.TrimSpace(command(t, "git", "rev-parse", "HEAD"))
	at := strings.TrimSpace(command(t, "git", "log", "-1", "--format=%cd", "--date=format-local:%Y%m%d%H%M%S"))
	version := fmt.Sprintf("v0.0.0-%s-%s", at, commit[:12])
	dir := t.TempDir()
	proxy := filepath.Join(dir, "proxy", module, "@v")
	if err := os.MkdirAll(proxy, 0o700); err != nil {
		t.Fatal(err)
	}
	info := fmt.Sprintf(`{"Version": %q}`, version)
	for name, text := range map[string]string{
		version + ".info": info, "../@latest": info, "list": "", version + ".mod": command(t, "git", "-C", "../../..", "show", "HEAD:go.mod"),
	} {
		if err := os.WriteFile(filepath.Join(proxy, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	paths := []string{"."} // but for modules inside this one, which the go command leaves out as well
	for nested := range strings.FieldsSeq(command(t, "git", "-C", "../../..", "ls-files", "*/go.mod")) {
		paths = append(paths, ":(exclude)"+filepath.Dir(nested))
	}
	command(t, "git", append([]string{"-C", "../../..", "archive", "--format=zip", "--prefix=" + module + "@" + version + "/", "-o", filepath.Join(proxy, version+".zip"), "HEAD", "--"}, paths...)...)

	cache := strings.TrimSpace(command(t, "go", "env", "GOMODCACHE"))
	t.Setenv("GOPROXY", "file://"+filepath.Join(dir, "proxy")+",file://"+filepath.Join(cache, "cache", "download"))
	t.Setenv("GOSUMDB", "off") // this machine has compared its modules with go.sum
	t.Setenv("GOMODCACHE", filepath.Join(dir, "modules"))
	t.Setenv("GOBIN", dir)
	t.Setenv("GOFLAGS", "-trimpath -modcacherw") // TempDir could not remove what is read-only
	t.Chdir(dir)                                 // outside of any module
	command(t, "go", "mod", "download", module+"@"+version)
	if mod := filepath.Join(dir, "modules", module+"@"+version, "go.mod"); strings.Contains(command(t, "go", "mod", "edit", "-print", mod), "\nreplace ") {
		t.Error("go.mod replaces a module: go install refuses that")
	}
	if !*installs {
		return
	}
	command(t, "go", "install", module+"/cmd/gorun@"+version)
	if said := command(t, filepath.Join(dir, "gorun"), "version"); !strings.Contains(said, "\ncommit "+commit[:12]+" of 20") {
		t.Errorf("it says of itself:\n%s", said)
	}
	wantWorks(t, filepath.Join(dir, "gorun"))
}

// wantWorks checks that a gorun runs a job.
func wantWorks(t *testing.T, gorun string) {
	t.Helper()
	if out := command(t, gorun, "--nproc-per-node", "2", "sh", "-c", "echo rank $RANK of $WORLD_SIZE"); !strings.Contains(out, "[1] rank 1 of 2\n") {
		t.Errorf("a job prints\n%s", out)
	}
}
