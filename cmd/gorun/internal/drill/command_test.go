package drill

import (
	"slices"
	"strings"
	"testing"
)

// TestAgentArgs: what the agents of a job get, and which nodes are special.
func TestAgentArgs(t *testing.T) {
	s := &testbed{options: Options{Nodes: 3, Nproc: 2}, endpoints: "e:1", dir: "/d", policy: Restart}
	args := func(node int) string { return strings.Join(s.agentArgs(node, "gorun"), " ") }
	const common = " --nproc-per-node=2 --max-restarts=3 --log-line-prefix=[${rank}]  --rdzv-backend=embedded --rdzv-endpoint=e:1 --rdzv-id=drill"
	for want, c := range map[string]struct {
		job    job
		policy Policy
		node   int
	}{
		"--nnodes=3:3" + common + " --rdzv-conf=is_host=true,last_call_timeout=10 gorun drill-worker /d/socket 0":                                    {job{}, Restart, 0},
		"--nnodes=3:3" + common + " --rdzv-conf=is_host=false,last_call_timeout=10 gorun drill-worker /d/socket 1":                                   {job{}, Restart, 1},
		"--nnodes=2:3" + common + " --rdzv-conf=is_host=false,last_call_timeout=10,ttl=2 --node-rank=0 gorun drill-worker /d/socket 0 hangs":         {job{etcd: 1, spare: 1, ttl: leaseTime, hang: true, ranks: true}, Restart, 0},
		"--nnodes=3:3" + common + " --rdzv-conf=is_host=true,last_call_timeout=10 --on-failure=replace gorun drill-worker /d/socket 0 rejoins":       {job{hang: true, hosts: 1}, Replace, 0},
		"--nnodes=3:3" + common + " --rdzv-conf=is_host=false,last_call_timeout=10 gorun drill-worker /d/socket 2 writes":                            {job{unread: true}, Restart, 2},
		"--nnodes=3:3" + common + " --rdzv-conf=is_host=true,last_call_timeout=10 gorun drill-worker /d/socket 0 ":                                   {job{unread: true, disk: true}, Restart, 0},
		"--nnodes=3:3" + common + " --rdzv-conf=is_host=false,last_call_timeout=10 --log-dir=logs --redirects=3 gorun drill-worker /d/socket 2 logs": {job{disk: true}, Restart, 2},
		"--nnodes=3:3" + common + " --rdzv-conf=is_host=true,last_call_timeout=10 --hang-timeout=2 --log-dir=logs gorun drill-worker /d/socket 0  ":  {job{flags: watched}, Restart, 0},
	} {
		s.job, s.policy = c.job, c.policy
		if got := args(c.node); got != strings.TrimSpace(want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	s.options.Program, s.options.Dir, s.job, s.policy = []string{"./train", "-x"}, "/w", job{disk: true}, Replace
	if got := s.agentArgs(0, "gorun"); !slices.Equal(got[len(got)-7:], []string{"gorun", "drill-program", "/d/socket", "0", "/w", "./train", "-x"}) {
		t.Errorf("%q", got)
	}
}
