package cli

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// A started is gorun as a resource manager has started it.
type started struct {
	manager  string   // a captured environment of package manager
	changes  []string // NAME=value, or NAME for a variable that is not set
	args     []string
	hostname string
	hosts    string // /etc/hosts
	munge    bool   // the machine has it
}

// parse is like the function of this name, in the environment of a resource manager.
func (s started) parse(t *testing.T) (*options, error) {
	t.Helper()
	environ := map[string]string{}
	if s.manager != "" {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "env", "manager", "testdata", s.manager))
		if err != nil {
			t.Fatal(err)
		}
		s.changes = append(strings.Split(strings.TrimSpace(string(text)), "\n"), s.changes...)
	}
	for _, kv := range s.changes {
		if name, value, ok := strings.Cut(kv, "="); ok {
			environ[name] = value
		} else {
			delete(environ, name)
		}
	}
	here := host{
		lookup:     func(name string) (string, bool) { v, ok := environ[name]; return v, ok },
		root:       fstest.MapFS{"etc/hosts": {Data: []byte(s.hosts)}},
		hostname:   func() (string, error) { return s.hostname, nil },
		hasProgram: func(name string) bool { return s.munge && strings.HasSuffix(name, "munge") },
	}
	var o *options
	cmd := newCommand(here, func(_ context.Context, got *options, _ []string) error { o = got; return nil })
	cmd.SetArgs(append(slices.Clone(s.args), "./train"))
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	return o, cmd.Execute()
}

const testToken = "GORUN_TOKEN=0123456789abcdef0123456789abcdef"

const podHosts = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n10.1.0.7\ttrain-3.train.default.svc.cluster.local\ttrain-3\n"

// fourNodes turns the step of two nodes into one of four.
var fourNodes = []string{"SLURM_STEP_NUM_NODES=4", "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_NODELIST=n[1-4]", "SLURM_STEP_TASKS_PER_NODE=1(x4)"}

// TestInferred: what gorun does in the environment of a resource manager, as it says it in one line.
func TestInferred(t *testing.T) {
	const (
		nodes = "--nnodes=2 (SLURM_STEP_NUM_NODES)"
		rank  = " --node-rank=1 (SLURM_NODEID)"
		id    = " --rdzv-id=2.0 (SLURM_JOB_ID, SLURM_STEP_ID)"
		meet  = " --rdzv-backend=embedded (the default for several nodes of Slurm) --rdzv-conf=is_host=false (SLURM_NODEID) " +
			"--rdzv-endpoint=n1:10368 (SLURM_STEP_NODELIST; the port from SLURM_JOB_ID, SLURM_STEP_ID)"
		step = "Slurm step 2.0: "
	)
	for name, c := range map[string]struct {
		started
		want string // empty: nothing
	}{
		"no manager":               {started{}, ""},
		"Slurm":                    {started{manager: "slurm-one-per-node", changes: []string{testToken}}, step + nodes + rank + id + meet},
		"Slurm with MUNGE":         {started{manager: "slurm-one-per-node", munge: true}, step + nodes + rank + id + meet + "; token: from the node of rank 0, by MUNGE"},
		"a token is enough":        {started{manager: "slurm-one-per-node", munge: true, changes: []string{testToken}}, step + nodes + rank + id + meet},
		"--standalone":             {started{manager: "slurm-one-per-node", args: []string{"--standalone"}}, ""},
		"--standalone for each":    {started{manager: "slurm-four-per-node", args: []string{"--standalone"}}, ""},
		"one node by hand":         {started{manager: "slurm-one-per-node", args: []string{"--nnodes=1"}}, ""},
		"a name by hand":           {started{manager: "slurm-one-per-node", changes: []string{testToken}, args: []string{"--rdzv-id=a"}}, step + nodes + rank + meet},
		"nodes that come and go":   {started{manager: "slurm-one-per-node", changes: []string{testToken, "PET_NNODES=1:2"}}, step + rank[1:] + id + meet},
		"another order":            {started{manager: "slurm-one-per-node", changes: []string{testToken}, args: []string{"--node-rank=0"}}, step + nodes + id + meet},
		"static":                   {started{manager: "slurm-one-per-node", args: []string{"--rdzv-backend=static"}}, step + nodes + rank + id + " --master-port=10371 (SLURM_JOB_ID, SLURM_STEP_ID) --master-addr=n1 (SLURM_STEP_NODELIST)"},
		"static by hand":           {started{manager: "slurm-one-per-node", args: []string{"--master-addr=n1"}}, step + nodes + rank + id},
		"an endpoint by hand":      {started{manager: "slurm-one-per-node", changes: []string{testToken}, args: []string{"--rdzv-backend=c10d", "--rdzv-endpoint=n1:5"}}, step + nodes + rank + id},
		"torchrun's own line":      {started{manager: "slurm-one-per-node", changes: []string{testToken}, args: []string{"--nnodes=2", "--rdzv-id=7", "--rdzv-backend=c10d", "--rdzv-endpoint=n1:5"}}, step + rank[1:]},
		"a job of several steps":   {started{manager: "slurm-one-per-node", changes: []string{testToken}, args: []string{"--nnodes=4", "--rdzv-id=7", "--rdzv-backend=c10d", "--rdzv-endpoint=n1:5"}}, step},
		"their own etcd":           {started{manager: "slurm-one-per-node", args: []string{"--rdzv-backend=etcd", "--rdzv-endpoint=etcd:2379"}}, step + nodes + rank + id},
		"all by hand":              {started{manager: "slurm-four-per-node", changes: []string{testToken}, args: []string{"--nnodes=8", "--rdzv-backend=c10d", "--rdzv-endpoint=n1:5"}}, ""},
		"by hand, without srun":    {started{manager: "slurm-batch-script", changes: []string{testToken}, args: []string{"--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=n1:5"}}, ""},
		"one node of Slurm":        {started{manager: "slurm-batch-script", changes: []string{"SLURM_JOB_NUM_NODES=1"}}, ""},
		"one node without srun":    {started{manager: "slurm-batch-script", args: []string{"--nnodes=1"}}, ""},
		"an interactive shell":     {started{manager: "slurm-interactive"}, ""},
		"a worker's own gorun":     {started{manager: "slurm-one-per-node", changes: []string{"TORCHELASTIC_RUN_ID=2.0"}}, ""},
		"three hosts":              {started{manager: "slurm-one-per-node", changes: append([]string{testToken}, fourNodes...)}, step + "--nnodes=4 (SLURM_STEP_NUM_NODES)" + rank + id + strings.NewReplacer("=n1:10368", "=n1:10368,n2:10368,n3:10368", "is_host=false", "is_host=true").Replace(meet)},
		"spares":                   {started{manager: "slurm-one-per-node", changes: append([]string{testToken}, fourNodes...), args: []string{"--spares=1"}}, step + "--nnodes=3 (SLURM_STEP_NUM_NODES)" + rank + id + strings.NewReplacer("=n1:10368", "=n1:10368,n2:10368,n3:10368", "is_host=false", "is_host=true").Replace(meet)},
		"spares of a fixed number": {started{manager: "slurm-one-per-node", changes: append([]string{testToken, "SLURMD_NODENAME=n4", "SLURM_NODEID=3", "SLURM_PROCID=3", "SLURM_GTIDS=3"}, fourNodes...), args: []string{"--nnodes=2", "--spares=2"}}, step + "--node-rank=3 (SLURM_NODEID)" + id + meet},
		"a requeued job":           {started{manager: "slurm-one-per-node", changes: []string{testToken, "SLURM_RESTART_COUNT=1"}}, "Slurm step 2.0.1: " + nodes + rank + strings.NewReplacer("2.0", "2.0.1", "STEP_ID", "STEP_ID, SLURM_RESTART_COUNT").Replace(id+meet)},
		"a step of one node":       {started{manager: "slurm-one-per-node", changes: []string{"SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NUM_TASKS=1", "SLURM_NODEID=0", "SLURM_PROCID=0", "SLURM_GTIDS=0", "SLURM_STEP_NODELIST=n2", "SLURM_STEP_TASKS_PER_NODE=1"}}, step + id[1:]},
		"mpiexec, one process":     {started{changes: []string{"PMI_RANK=0", "PMI_SIZE=1"}}, "MPICH job mpiexec: --rdzv-id=mpiexec (MPICH)"},
		"mpirun, a node each":      {started{manager: "openmpi-in-slurm", changes: []string{testToken}, args: []string{"--rdzv-backend=c10d", "--rdzv-endpoint=n1"}}, "Open MPI job 109576193: --nnodes=2 (OMPI_COMM_WORLD_SIZE) --node-rank=1 (OMPI_COMM_WORLD_RANK) --rdzv-id=109576193 (PMIX_NAMESPACE)"},
		"Kubernetes": {started{manager: "kubernetes", changes: []string{testToken, "PET_NNODES=4"}, hostname: "train-3", hosts: podHosts},
			"Kubernetes job job: --node-rank=3 (JOB_COMPLETION_INDEX) --rdzv-backend=embedded (the default for several nodes of Kubernetes) --rdzv-id=train (this pod's name) " +
				"--rdzv-conf=is_host=false (JOB_COMPLETION_INDEX) --rdzv-endpoint=train-0.train.default.svc.cluster.local:29400,train-1.train.default.svc.cluster.local:29400,train-2.train.default.svc.cluster.local:29400 (this pod's name in /etc/hosts)"},
		"Kubernetes, one pod each": {started{manager: "kubernetes", args: []string{"--nnodes=1"}}, ""},
		"Kubeflow, static": {started{manager: "kubernetes", changes: []string{"RANK=3", "WORLD_SIZE=4", "PET_NNODES=4", "PET_NPROC_PER_NODE=2", "PET_NODE_RANK=3", "PET_MASTER_ADDR=job-node-0-0.job", "PET_MASTER_PORT=29500"}},
			""},
		"Kubeflow, elastic": {started{manager: "kubernetes", changes: []string{testToken, "PET_RDZV_BACKEND=c10d", "PET_RDZV_ENDPOINT=job-worker-0:23456", "PET_RDZV_ID=job", "PET_NNODES=1:4", "PET_MAX_RESTARTS=3"}},
			""},
	} {
		o, err := c.parse(t)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := ""
		if o.inferred != nil && (len(o.inferred.Flags) > 0 || c.want != "") {
			got = o.inferred.text()
		}
		if strings.TrimSpace(got) != strings.TrimSpace(c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// rankOf is the rank of a node of the step, in decimal.
var rankOf = map[string]string{"n1": "0", "n2": "1"}

// TestInferredOptions: the line and the job are the same.
func TestInferredOptions(t *testing.T) {
	o, err := started{manager: "slurm-one-per-node", changes: append([]string{testToken, "PET_N_PROC_PER_NODE=3"}, fourNodes...), args: []string{"--rdzv-conf=join_timeout=7"}}.parse(t)
	if err != nil {
		t.Fatal(err)
	}
	c := o.etcdConfig()
	if o.nnodes != 4 || o.minNodes != 4 || o.nodeRank != 1 || o.nproc != 3 || o.runID != "2.0" || !o.elastic() || !c.Hosted || len(c.Endpoints) != 3 || c.Hosts == nil || !*c.Hosts || c.JoinTimeout.Seconds() != 7 {
		t.Errorf("got %+v", o)
	}
	if !maps.Equal(o.conf, conf{"is_host": "true", "join_timeout": "7"}) || o.given["rdzv-conf"] != "--rdzv-conf=join_timeout=7" {
		t.Errorf("conf %v, given as %s", o.conf, o.given["rdzv-conf"])
	}
	if o, err = (started{manager: "slurm-interactive"}).parse(t); err != nil || len(o.notes) != 1 ||
		o.notes[0] != "this shell is on the first of 2 nodes, and the job will run there only; for all of them, write srun --ntasks=2 --ntasks-per-node=1 gorun ..." {
		t.Errorf("in an interactive shell: %v, %q", err, o.notes)
	}
	for node, want := range map[string][]string{"n1": {"Slurm says where the nodes meet: you can leave out --rdzv-endpoint, --rdzv-backend and --rdzv-id"}, "n2": nil} {
		o, err := started{manager: "slurm-one-per-node", changes: []string{
			testToken, "SLURMD_NODENAME=" + node, "SLURM_NODEID=" + rankOf[node], "SLURM_PROCID=" + rankOf[node], "SLURM_GTIDS=" + rankOf[node],
		}, args: []string{"--nnodes=2", "--rdzv-id=7", "--rdzv-backend=c10d", "--rdzv-endpoint=n1:5"}}.parse(t)
		if err != nil || !slices.Equal(o.notes, want) {
			t.Errorf("torchrun's own line on %s: %v, %q, want %q", node, err, o.notes, want)
		}
	}
	o, err = started{manager: "slurm-one-per-node", munge: true, args: []string{"--worker-tls"}}.parse(t)
	if err != nil || !o.usesMunge() || !o.encrypted() || len(o.warnings(nil)) != 0 {
		t.Errorf("with MUNGE: %v, %q", err, o.warnings(nil))
	}
}

// TestRefusedByManager: where gorun would run on fewer nodes than the user thinks, or twice on one, or in the open, it says what to write.
func TestRefusedByManager(t *testing.T) {
	for name, c := range map[string]struct {
		started
		want string
	}{
		"no srun": {started{manager: "slurm-batch-script"},
			"Slurm job 4 has 3 nodes (SLURM_JOB_NUM_NODES), and without srun gorun would run on one of them: write srun --ntasks=3 --ntasks-per-node=1 gorun ...; to run on one node, add --nnodes=1"},
		"no srun, and a number": {started{manager: "slurm-batch-script", args: []string{"--nnodes=3"}},
			"Slurm job 4 has 3 nodes (SLURM_JOB_NUM_NODES), and without srun gorun would run on one of them: write srun --ntasks=3 --ntasks-per-node=1 gorun ...; to run on one node, add --nnodes=1"},
		"several on a node": {started{manager: "slurm-four-per-node"},
			"Slurm step 3.0 has started several gorun on this node: want one for each node, as in srun --ntasks=2 --ntasks-per-node=1 gorun --nproc-per-node=4 ...; if each is a job of its own, add --standalone"},
		"several of mpirun": {started{manager: "openmpi-in-slurm", changes: []string{"OMPI_COMM_WORLD_LOCAL_SIZE=2"}},
			"Open MPI job 109576193 has started several gorun on this node: want one for each node, as in mpirun --map-by ppr:1:node gorun --nproc-per-node=2 ...; if each is a job of its own, add --standalone"},
		"several of mpiexec": {started{manager: "mpich", args: []string{"--nproc-per-node=2"}},
			"MPICH job mpiexec has started several gorun on this node: want one for each node, as in mpiexec -ppn 1 gorun --nproc-per-node=4 ...; if each is a job of its own, add --standalone"},
		"several of flux": {started{manager: "flux", changes: []string{"FLUX_TASK_LOCAL_ID=1", "FLUX_JOB_SIZE=4"}},
			"Flux job ƒ2Nq7bVxK has started several gorun on this node: want one for each node, as in flux run --nodes=2 --ntasks=2 gorun --nproc-per-node=1 ...; if each is a job of its own, add --standalone"},
		"another number of nodes": {started{manager: "slurm-one-per-node", args: []string{"--nnodes=3"}},
			"--nnodes=3: Slurm step 2.0 has 2 (SLURM_STEP_NUM_NODES): leave out --nnodes, or say where nodes of other steps meet, with --rdzv-endpoint"},
		"too few nodes": {started{manager: "slurm-one-per-node", changes: []string{"PET_NNODES=3:4"}},
			"PET_NNODES=3:4: Slurm step 2.0 has 2 (SLURM_STEP_NUM_NODES): leave out --nnodes, or say where nodes of other steps meet, with --rdzv-endpoint"},
		"contradiction": {started{manager: "slurm-one-per-node", changes: []string{"SLURMD_NODENAME=n7"}},
			`the variables of Slurm contradict each other: node number 1 of SLURM_STEP_NODELIST is n2, and SLURMD_NODENAME="n7"; to run on this node alone, add --standalone`},
		"no token": {started{manager: "slurm-one-per-node"},
			"Slurm step 2.0: the nodes need a token, so that nobody else can start programs at n1:10368: write export GORUN_TOKEN=$(openssl rand -hex 32) before srun"},
		"torchrun's own line without a token": {started{manager: "slurm-one-per-node", munge: true, args: []string{"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=n1:5"}},
			"Slurm step 2.0: the nodes need a token, so that nobody else can start programs at n1:5: leave out --rdzv-endpoint, --rdzv-backend and --rdzv-id: then they get one by MUNGE"},
		"no token in Kubernetes": {started{manager: "kubernetes", changes: []string{"PET_NNODES=4"}, hostname: "train-3.train", munge: true},
			"Kubernetes job job: the nodes need a token, so that nobody else can start programs at train-0.train:29400,train-1.train:29400,train-2.train:29400: put one into a Secret (kubectl create secret generic gorun --from-literal=token=$(openssl rand -hex 32)), and that into the variable GORUN_TOKEN of the pods (env, valueFrom, secretKeyRef)"},
		"all spares": {started{manager: "slurm-one-per-node", args: []string{"--spares=2"}},
			"--spares=2: Slurm step 2.0 has 2 nodes (SLURM_STEP_NUM_NODES), so that none would run workers"},
		"no hosts": {started{manager: "openmpi-in-slurm"},
			"Open MPI does not say on which hosts its 2 tasks run: say where they meet, as in gorun --rdzv-endpoint=HOST, where HOST is the first of the hosts"},
		"no etcd": {started{manager: "slurm-one-per-node", args: []string{"--rdzv-backend=etcd"}},
			"--rdzv-backend=etcd: where do the nodes meet? Give every node the same endpoint, as in --rdzv-endpoint=node0:2379"},
		"an unknown number of pods": {started{manager: "kubernetes"},
			"Kubernetes does not say how many pods the job has: add --nnodes=N, or the variable PET_NNODES; if each pod is a job of its own, add --nnodes=1"},
		"an unknown number of hosts": {started{changes: []string{"PMI_RANK=1", "PMI_SIZE=4"}},
			"MPICH does not say on how many hosts its 4 processes run: add --nnodes=N; if each is a job of its own, add --standalone"},
		"a step without its job": {started{manager: "slurm-one-per-node", changes: []string{"SLURM_JOB_ID="}},
			"SLURM_JOB_ID is not set or empty, though SLURM_STEP_NUM_NODES is set: pass on all variables of Slurm, or none; to run on this node alone, add --standalone"},
		"too few pods": {started{manager: "kubernetes", args: []string{"--nnodes=3"}},
			"--nnodes=3: Kubernetes says that this is node 3, counted from 0 (JOB_COMPLETION_INDEX)"},
		"a pod without a service": {started{manager: "kubernetes", args: []string{"--nnodes=4"}, hostname: "train-3"},
			"pod train-3 has no name that other pods can look up: give the Job a headless service, and the service's name to its pods as subdomain; or say where the nodes meet, with --rdzv-endpoint"},
	} {
		if _, err := c.parse(t); err == nil || !is[*usageError](err) || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
}
