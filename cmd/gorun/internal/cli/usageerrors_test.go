package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUsageErrors(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, []byte(strings.Repeat("s3cret", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string // split at spaces
		want string
	}{
		{"--nproc-per-node=banana x", "--nproc-per-node=banana: want a positive number, auto, cpu, gpu or xpu"},
		{"--nproc_per_node 0 x", "--nproc-per-node=0: want a positive number, auto, cpu, gpu or xpu"},
		{"--nproc-per-node=-1 x", "--nproc-per-node=-1: want a positive number, auto, cpu, gpu or xpu"},
		{"--nproc-per-node= x", `--nproc-per-node="": want a positive number, auto, cpu, gpu or xpu`},
		{"--nnodes=2:1 x", "--nnodes=2:1: want a number of nodes from 1 to 65536, or MIN:MAX with MIN at most MAX"},
		{"--nnodes=2:20:30 x", "--nnodes=2:20:30: want a number of nodes from 1 to 65536, or MIN:MAX with MIN at most MAX"},
		{"--nnodes=0:1 x", "--nnodes=0:1: want a number of nodes from 1 to 65536, or MIN:MAX with MIN at most MAX"},
		{"--nnodes=1:2 x", "--nnodes=1:2: a range needs an etcd over which the nodes meet, as with --rdzv-backend=embedded --rdzv-endpoint=node0:29400"},
		{"--nnodes=2 x", "--nnodes=2: where is node 0? Give every node the same address, as in --master-addr=node0 --master-port=29500"},
		{"--nnodes=2 --rdzv-endpoint=h x", "--nnodes=2: how do the nodes meet at h? Write --rdzv-backend=embedded, or c10d as torchrun calls it; or number the nodes yourself, with --node-rank=0 to 1"},
		{"--nnodes=2 --master-addr=h x", "--nnodes=2: which node is this? Static nodes do not meet, so number them, with --node-rank=0 on h to --node-rank=1"},
		{"--nnodes=3 --rdzv-backend=static --rdzv-endpoint=h:7 x", "--nnodes=3: which node is this? Static nodes do not meet, so number them, with --node-rank=0 on h to --node-rank=2"},
		{"--nnodes=2 --master-addr=h --node-rank=2 x", "--node-rank=2: node ranks are 0 to 1, since --nnodes is 2"},
		{"--nnodes=2 --master-addr=h --rdzv-conf=rank=2 x", "--rdzv-conf=rank=2: node ranks are 0 to 1, since --nnodes is 2"},
		{"--node-rank=-1 x", "--node-rank=-1: want a number from 0 to 65535"},
		{"--master-addr=a/b x", "--master-addr=a/b: want a host name or an IP address"},
		{"--master-addr=node0:29500 x", "--master-addr=node0:29500: want a host name or an IP address, without a port"},
		{"--master-port=65536 x", "--master-port=65536: want a number from 0 to 65535"},
		{"--rdzv-endpoint=:77 x", "--rdzv-endpoint=:77: want host:port"},
		{"--rdzv-endpoint=h:p x", "--rdzv-endpoint=h:p: want host:port, with a port from 0 to 65535"},
		{"--rdzv-backend=statc x", "--rdzv-backend=statc: want static, c10d, etcd, etcd-v2, etcd-v3 or embedded (did you mean static?)"},
		{"--nnodes=2 --rdzv-backend=c10d x", "--rdzv-backend=c10d: where do the nodes meet? Give every node the same endpoint, as in --rdzv-endpoint=node0:29400"},
		{"--nnodes=2 --rdzv-backend=etcd x", "--rdzv-backend=etcd: where do the nodes meet? Give every node the same endpoint, as in --rdzv-endpoint=node0:2379"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h x", "--rdzv-backend=etcd: an etcd may serve many jobs: give this one the same name on every node, as in --rdzv-id=train17"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=a/b x", "--rdzv-id=a/b: want a name without a slash"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 x", `--rdzv-endpoint=localhost:0: endpoint "localhost:0": port "0": want a number from 1 to 65535`},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h x", "--rdzv-endpoint=h: anybody who reached this endpoint could start programs: give every node the same secret, as in --rdzv-token-file=token (create it with umask 077; openssl rand -hex 32 >token)"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=j --worker-tls x", "--worker-tls=1: the workers' secret would be sent unencrypted, given --rdzv-endpoint=h: use --rdzv-conf=protocol=https, or gorun etcd with a token"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=localhost --rdzv-id=j --worker-tls x", "--worker-tls=1: the workers' secret would be sent unencrypted, given --rdzv-endpoint=localhost: use --rdzv-conf=protocol=https, or gorun etcd with a token"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h,i x", "--rdzv-endpoint=h,i: 2 endpoints: want one, or three of which any one may fail"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h,h,i x", `--rdzv-endpoint=h,h,i: endpoint h:29400 occurs twice in "h,h,i"`},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=http://h:1 x", `--rdzv-endpoint=http://h:1: endpoint "http://h:1": want a host and a port without a scheme, as in "h:1"`},
		{"--nnodes=2:3 --node-rank=3 --rdzv-backend=c10d --rdzv-endpoint=localhost x", "--node-rank=3: node ranks are 0 to 2, since --nnodes is 3"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-conf=ssl_cert=a,ca_cert=b x", "--rdzv-conf=ssl_cert=a,ca_cert=b: give both ssl_cert and ssl_cert_key, or neither"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-conf=ca_cert=b x", "--rdzv-conf=ca_cert=b: want all of ca_cert, ssl_cert and ssl_cert_key, or none"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-conf=username=u,password_file=p x", "--rdzv-conf=username=u,password_file=p: an etcd that gorun hosts has no users; use --rdzv-token-file"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-conf=store_type=file x", "--rdzv-conf=store_type=file: nodes meet over the network; leave out store_type"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-conf=protocol=https x", "--rdzv-conf=protocol=https: gorun chooses the protocol of an etcd that it hosts; leave out protocol"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=a --rdzv-conf=username=u x", "--rdzv-conf=username=u: give both username and password_file, or neither"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=a --rdzv-conf=protocol=http,ca_cert=c x", "--rdzv-conf=protocol=http,ca_cert=c: certificates need protocol=https"},
		{"--scale-up=imediate x", "--scale-up=imediate: want immediate, on-restart or never (did you mean immediate?)"},
		{"--rdzv-conf=timout=3 x", "--rdzv-conf=timout=3: no such key timout (did you mean timeout?): want rank, timeout, read_timeout, join_timeout, last_call_timeout, " +
			"close_timeout, heartbeat_timeout, keep_alive_interval, keep_alive_max_attempt, store_type, is_host, use_libuv, protocol, ssl_cert, ssl_cert_key, ca_cert, etcd_prefix, ttl, after_end, username or password_file"},
		{"--rdzv-conf=timeout=soon x", "--rdzv-conf=timeout=soon: timeout: want a number of seconds, 0 or more"},
		{"--rdzv-conf=rank x", "--rdzv-conf=rank: rank has no value: want key=value pairs separated by commas"},
		{"--rdzv-token-file=/nonexistent x", "--rdzv-token-file=/nonexistent: cannot read the token: open /nonexistent: no such file or directory"},
		{"--rdzv-token-file=/dev/null x", "--rdzv-token-file=/dev/null: want a token of 16 to 1024 visible ASCII characters, such as the output of openssl rand -hex 32"},
		{"--rdzv-token-file=" + long + " x", "--rdzv-token-file=" + long + ": want a token of 16 to 1024 visible ASCII characters, such as the output of openssl rand -hex 32"},
		{"--standalone=maybe x", "--standalone=maybe: want 1 or 0"},
		{"--standalone --nnodes=2 x", "--nnodes=2: --standalone is for one node"},
		{"--max-restarts=-1 x", "--max-restarts=-1: want a number from 0 to 1073741824"},
		{"--shutdown-timeout=-1 x", "--shutdown-timeout=-1: want a number of seconds, 0 or more"},
		{"--shutdown-timeout=NaN x", "--shutdown-timeout=NaN: want a number of seconds, 0 or more"},
		{"--monitor-interval=0 x", "--monitor-interval=0: want a positive number of seconds"},
		{"--start-method=thread x", "--start-method=thread: want spawn, fork or forkserver"},
		{"--role=\t x", `--role="\t": want a name of at most 1024 bytes`},
		{"--role=" + strings.Repeat("r", 1025) + " x", "--role=" + strings.Repeat("r", 300) + "...: want a name of at most 1024 bytes: this one has 1025"},
		{"--rdzv-id=" + strings.Repeat("j", 100_000) + " x", "--rdzv-id=" + strings.Repeat("j", 300) + "...: want a name of at most 1024 bytes: this one has 100000"},
		{"--master-addr=" + strings.Repeat("h", 1000) + " x", "--master-addr=" + strings.Repeat("h", 300) + "...: want a host name or an IP address"},
		{"--local-addr=" + strings.Repeat("h", 1000) + " x", "--local-addr=" + strings.Repeat("h", 300) + "...: want a host name or an IP address"},
		{"--nnodes=2 --rdzv-endpoint=" + strings.Repeat("h", 1000) + " x", "--rdzv-endpoint=" + strings.Repeat("h", 300) + `...: want host:port`},
		{"-r 4 x", "--redirects=4: want 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or a list by local rank such as 0:3,1:2"},
		{"--tee=0:9 x", `--tee=0:9: "0:9" in "0:9": want 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or a list by local rank such as 0:3,1:2`},
		{"--nprocs-per-node=2 x", "unknown flag --nprocs-per-node: did you mean --nproc-per-node?"},
		{"--master_adr=h x", "unknown flag --master_adr: did you mean --master-addr?"},
		{"--event_log_handler=console x", "--event_log_handler: gorun does not have this flag of torchrun: " +
			"--event-log=FILE writes what happens to the job"},
		{"--frobnicate x", "unknown flag --frobnicate: gorun help flags lists all"},
		{"-x", "unknown flag -x: gorun help flags lists all"},
		{"-nproc_per_node=2 x", "unknown flag -nproc_per_node: did you mean --nproc-per-node?"},
		{"-n 2 x", "unknown flag -n: did you mean --nproc-per-node?"},
		{"-n2 x", "unknown flag -n: did you mean --nproc-per-node?"},
		{"-N=2 x", "unknown flag -N: did you mean --nnodes?"},
		{"-N 2 x", "unknown flag -N: did you mean --nnodes?"},
		{"-mx x", "unknown flag -x: gorun help flags lists all"},
		{"--n=1 x", "--n may be --nnodes or --nproc-per-node or --node-rank or --no-python or --numa-binding: write more of it"},
		{"--log=x x", "--log may be --log-dir or --logs-specs: write more of it"},
		{"--rdzv=x x", "--rdzv may be --rdzv-endpoint or --rdzv-backend or --rdzv-id or --rdzv-conf: write more of it"},
		{"--module --no-python x", "--module=1 and --no-python=1: leave out one of them"},
		{"-m --run-path x", "--module=1 and --run-path=1: leave out one of them"},
		{"--json x", "--json=1: --json needs --dry-run"},
		{"--log-keep=3 x", "--log-keep=3: has no effect without --log-max-size"},
		{"--replace-timeout=3 x", "--replace-timeout=3: has no effect without --on-failure=replace"},
		{"--on-failure=replace --replace-timeout=0 x", "--replace-timeout=0: want more than 0 seconds"},
		{"--on-failure=replace --nnodes=2 --node-rank=0 --master-addr=a x", "--on-failure=replace: static nodes do not learn that a worker of another node has failed: " +
			"have the nodes meet over an etcd, as with --rdzv-backend=embedded --rdzv-endpoint=node0:29400"},
		{"--signals-to-handle=SIGTREM x", "--signals-to-handle=SIGTREM: no signal SIGTREM (did you mean SIGTERM?): want names separated by commas, such as SIGTERM,SIGUSR1"},
		{"--nproc-per-node=gppu x", "--nproc-per-node=gppu: want a positive number, auto, cpu, gpu or xpu (did you mean gpu?)"},
		{"--nproc-per-node=xpu x", "--nproc-per-node=xpu: there is no such device on this machine: want a number, or cpu for one worker on each CPU"},
		{"--nnodes", "--nnodes needs a value, as in --nnodes=N: number of nodes: N, or MIN:MAX if nodes may come and go (default 1)"},
		{"--nnodes=1", "no program to run: give one, as in gorun --nproc-per-node=2 ./train --epochs=3"},
	} {
		o, _, err := parse(t, strings.Split(c.args, " ")...)
		if err == nil || err.Error() != c.want || o != nil {
			t.Errorf("%s:\n got %v\nwant %s", c.args, err, c.want)
			continue
		}
		if code := exitCode(err); code != 2 {
			t.Errorf("%s: exit code %d, want 2", c.args, code)
		}
	}
}

func TestErrorNamesTheVariable(t *testing.T) {
	t.Setenv("PET_NPROC_PER_NODE", "many")
	if _, _, err := parse(t, "x"); err == nil || err.Error() != "PET_NPROC_PER_NODE=many: want a positive number, auto, cpu, gpu or xpu" {
		t.Errorf("got %v", err)
	}
	t.Setenv("PET_NPROC_PER_NODE", "")
	t.Setenv("GORUN_TOKEN", "s3cret")
	if _, _, err := parse(t, "--nproc-per-node=1", "x"); err == nil || strings.Contains(err.Error(), "s3cret") || !strings.HasPrefix(err.Error(), "GORUN_TOKEN: want a token") {
		t.Errorf("got %v", err)
	}
}
