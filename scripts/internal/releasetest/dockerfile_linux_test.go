package releasetest_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// An image is what the last stage of a Dockerfile says.
type image struct {
	root, dir, user string
	entrypoint, cmd []string
}

// buildImage follows a Dockerfile of two stages, where docker is not needed. In the first stage, which has this machine's programs,
// commands run in the directory of WORKDIR below build, and so their paths must be relative.
func buildImage(t *testing.T, dockerfile, context string) image {
	t.Helper()
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	build := t.TempDir()
	var i image
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		instruction, rest, _ := strings.Cut(line, " ")
		args := strings.Fields(rest)
		root := build
		if i.root != "" {
			root = i.root
		}
		switch {
		case instruction == "FROM" && i.root == "" && len(args) == 3 && args[1] == "AS" && args[2] == "build":
			if version := command(t, "go", "env", "GOVERSION"); !strings.HasPrefix(version, "go"+strings.TrimPrefix(args[0], "golang:")+".") {
				t.Errorf("FROM %s, and this is %s", args[0], version)
			}
		case line == "FROM scratch" && i.root == "":
			i.root, i.dir = t.TempDir(), "/"
		case instruction == "WORKDIR" && len(args) == 1 && filepath.IsAbs(rest):
			if err := os.MkdirAll(filepath.Join(root, rest), 0o755); err != nil {
				t.Fatal(err)
			}
			i.dir = rest
		case line == "COPY . ." && i.root == "":
			command(t, "cp", "-a", context+"/.", filepath.Join(build, i.dir))
		case instruction == "COPY" && i.root != "" && len(args) == 3 && args[0] == "--from=build":
			command(t, "cp", "-a", filepath.Join(build, args[1])+"/.", filepath.Join(i.root, args[2]))
		case instruction == "RUN" && i.root == "":
			command(t, "sh", "-c", "cd "+filepath.Join(build, i.dir)+" && "+rest)
		case instruction == "USER" && len(args) == 1:
			i.user = rest
		case instruction == "ENTRYPOINT" && json.Unmarshal([]byte(rest), &i.entrypoint) == nil:
		case instruction == "CMD" && json.Unmarshal([]byte(rest), &i.cmd) == nil:
		default:
			t.Fatalf("%s: the test does not know %q", dockerfile, line)
		}
	}
	return i
}

// container runs a command as process 1, in a root directory with what a container runtime adds to an image, and no network but loopback.
const container = `set -e
root=$1 dir=$2 user=$3
shift 3
mount --make-rprivate /
mount --rbind $root $root
mkdir -p $root/proc $root/dev $root/sys
mount -t proc proc $root/proc
mount --rbind -o ro /sys $root/sys
mount -t tmpfs -o mode=755 tmpfs $root/dev
for device in null zero full random urandom; do
	touch $root/dev/$device
	mount --bind /dev/$device $root/dev/$device
done
ip link set lo up
export HOME=/ PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec unshare --root=$root --wd=$dir --setgid=${user#*:} --setuid=${user%:*} "$@"`

// run runs a container, and returns what it prints.
func (i image) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	line := append([]string{"30", "env", "-i", "PATH=" + os.Getenv("PATH"), "unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child",
		"sh", "-c", container, "sh", i.root, i.dir, i.user}, i.entrypoint...)
	out, err := exec.CommandContext(t.Context(), "timeout", append(line, args...)...).CombinedOutput()
	return string(out), err
}

// TestDockerfile: the image of docs/clusters/Dockerfile runs a job, though it has neither a shell nor users.
func TestDockerfile(t *testing.T) {
	testkit.Nightly(t, "compiles gorun without cgo")
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--net", "--fork", "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		testkit.Cannot(t, "containers take root: %v\n%s", err, out)
	}
	checkout, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	context := t.TempDir()
	command(t, "cp", filepath.Join(checkout, "docs/examples/ring_allreduce/main.go"), filepath.Join(checkout, "go.sum"), context)
	t.Setenv("GOPROXY", "off") // the modules that gorun needs are there, or go install gets them
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOWORK", "off")
	command(t, "sh", "-c", "cd "+context+" && go mod init example.com/train && go mod edit -replace github.com/gorun/gorun="+checkout+
		" && go get -tool github.com/gorun/gorun/cmd/gorun")
	i := buildImage(t, filepath.Join(checkout, "docs/clusters/Dockerfile"), context)

	var files []string
	err = fs.WalkDir(os.DirFS(i.root), ".", func(path string, entry fs.DirEntry, err error) error {
		files = append(files, path)
		return err
	})
	if want := []string{".", "tmp", "usr", "usr/bin", "usr/bin/gorun", "usr/bin/train", "work"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("the image has %v (%v), want %v", files, err, want)
	}
	if !strings.HasPrefix(i.user, "65532") {
		t.Errorf("its user is %q", i.user)
	}

	if out, err := i.run(t, i.cmd...); err != nil || !strings.Contains(out, "[0] rank 0 of ") {
		t.Errorf("docker run: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(i.root, i.dir, "settings"), nil, 0o644); err != nil { // a volume has it
		t.Fatal(err)
	}
	if out, err := i.run(t, "--nproc-per-node=3", "--env-file=settings", "train"); err != nil || !strings.Contains(out, "[2] rank 2 of 3 has [3 3 3 3 3 3 3 3]\n") {
		t.Errorf("docker run with arguments: %v\n%s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(i.root, "tmp")); err != nil {
		t.Fatal(err)
	}
	const lacks = "gorun: cannot create a directory for temporary files ($TMPDIR chooses another place): stat /tmp: no such file or directory\n"
	if out, err := i.run(t, i.cmd...); err == nil || out != lacks {
		t.Errorf("without /tmp: %v\n%s", err, out)
	}
}
