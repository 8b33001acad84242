package hosttest

import (
	"os"
	"testing"
	"time"
)

// TestQuota: a process that always computes gets the quota, and no more.
func TestQuota(t *testing.T) {
	t.Parallel()
	m := NewMachines(t, Config{Name: "slow"})[0]
	begin, end := t.TempDir()+"/begin", t.TempDir()+"/end"
	m.StartDaemon(t, m.Command("python3", "-c", `
import os, sys, time
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
begun, used = time.time(), time.process_time()
while time.time() < begun + 1: pass
with open(sys.argv[2] + "~", "w") as f: f.write("used %.2f" % ((time.process_time() - used) / (time.time() - begun)))
os.rename(sys.argv[2] + "~", sys.argv[2])
`, begin, end))
	m.Quota(t, 0.2)
	if err := os.WriteFile(begin, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if text, err := os.ReadFile(end); err == nil {
			if got := string(text); got < "used 0.01" || got > "used 0.25" {
				t.Errorf("%s of a processor", got)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("it does not end")
}
