package python_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// foreignPython puts a Python of arm64 into a folder, without telling this system's apt and dpkg of it.
const foreignPython = `set -e
cd "$1"
mkdir -p state/lists/partial cache/archives/partial root
: >status
apt() {
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dir::State="$PWD/state" -o Dir::State::status="$PWD/status" -o Dir::Cache="$PWD/cache" \
		-o Debug::NoLocking=1 -o APT::Architecture=arm64 -o APT::Architectures=arm64 "$@"
}
apt update
apt install -y --download-only --no-install-recommends python3
for package in cache/archives/*.deb; do
	dpkg -x "$package" root
done
rm -r cache state`

// TestArm64: the wheel for arm64 has a gorun and a library that work there, as far as an emulator tells.
func TestArm64(t *testing.T) {
	testkit.Nightly(t, "a Python for arm64 has to be downloaded")
	for _, need := range []string{"qemu-aarch64-static", "aarch64-linux-gnu-gcc", "apt-get", "dpkg"} {
		if _, err := exec.LookPath(need); err != nil {
			testkit.Cannot(t, "%v", err)
		}
	}
	script, err := filepath.Abs("../../scripts/wheel")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	run(t, "sh", "-c", foreignPython, "sh", folder)
	root, site := filepath.Join(folder, "root"), filepath.Join(folder, "site")
	wheel := strings.TrimSpace(run(t, script, "--arch", "arm64", "--output", folder))
	run(t, "python3", "-m", "zipfile", "-e", wheel, site)
	gorun := filepath.Join(site, "gorun", "bin", "gorun")
	if err := os.Chmod(gorun, 0o755); err != nil {
		t.Fatal(err)
	}
	if out := run(t, "qemu-aarch64-static", gorun, "--version"); !strings.HasPrefix(out, "gorun ") {
		t.Errorf("its gorun says %q", out)
	}
	address := testkit.ReservedAddr(t)
	host, port, _ := strings.Cut(address, ":")
	var ranks sync.WaitGroup
	for rank := range 2 {
		cmd := exec.CommandContext(t.Context(), "qemu-aarch64-static", "-L", root, filepath.Join(root, "usr/bin/python3"), "-c", mean)
		cmd.Dir = folder // here, Python would find the package that is not in the wheel
		cmd.Env = append(os.Environ(), "PYTHONPATH="+site, "WORLD_SIZE=2", fmt.Sprint("RANK=", rank), "MASTER_ADDR="+host, "MASTER_PORT="+port,
			"GORUN_TOKEN=a-token-of-this-test-alone")
		ranks.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "0.5\n" {
				t.Errorf("rank %d: %v: %s", rank, err, out)
			}
		})
	}
	ranks.Wait()
}
