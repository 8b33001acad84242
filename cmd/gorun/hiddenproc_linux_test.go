package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/hosttest"
	"github.com/gorun/gorun/env/testing/testkit"
)

// TestUnknownUser: a job runs as a user without a name and with HOME=/, as on OpenShift, also where /proc hides the processes of others. Nothing
// is left of it, and gorun status finds it.
func TestUnknownUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		testkit.Cannot(t, "only root can become another user")
	}
	const script = `
		mount -o remount,"$1" /proc
		run() { setpriv --reuid=1000730000 --regid=0 --clear-groups "$gorun" --nproc-per-node=2 sh -c "$1"; }
		run 'sleep 1000 & test $RANK = 0 || exit 0; until "$gorun" status | grep "1 node and 2 ranks"; do :; done' || exit 1
		run 'sleep 1000 & test $RANK = 0 || exit 3; sleep 1000'
		test $? = 3 || exit 2
		! grep -lz '^sleep$' /proc/[0-9]*/cmdline`
	exe, unshare := forEveryUser(t), hosttest.Need(t, "unshare", "util-linux")
	for _, option := range []string{"hidepid=0", "hidepid=2"} {
		cmd := exec.CommandContext(t.Context(), unshare, "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script, "sh", option)
		cmd.Dir = "/"
		cmd.Env = []string{"HOME=/", "PATH=" + os.Getenv("PATH"), "OMP_NUM_THREADS=1", "gorun=" + exe, raceExitsAtOnce}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "1 node and 2 ranks") {
			t.Errorf("%s: %v\n%s", option, err, out)
		}
	}
}
