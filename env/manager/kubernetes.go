package manager

import (
	"bufio"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

var kubernetes = &Manager{
	Name: "Kubernetes",
	ownToken: "put one into a Secret (kubectl create secret generic gorun --from-literal=token=$(openssl rand -hex 32)), and that into the variable " +
		"GORUN_TOKEN of the pods (env, valueFrom, secretKeyRef)",
	find: findKubernetes, meet: meetPods, around: "KUBERNETES_SERVICE_HOST",
	killLimit: func(bool) KillLimit {
		return KillLimit{defaultKill, "Kubernetes' default of terminationGracePeriodSeconds; " + terminationVariable + " is not set", false}
	},
	uncounted: "how many pods the job has: add --nnodes=N, or the variable PET_NNODES; if each pod is a job of its own, add --nnodes=1",
}

// findKubernetes reads what an Indexed Job has set. It does not say how many pods there are.
func findKubernetes(v *variables) *Task {
	if !v.has("JOB_COMPLETION_INDEX") {
		return nil
	}
	return &Task{ID: "job", Node: v.number("JOB_COMPLETION_INDEX"), LocalSize: 1, Sources: Sources{Node: "JOB_COMPLETION_INDEX"}}
}

// terminationVariable names a pod's terminationGracePeriodSeconds. Kubernetes says it in no variable of its own.
const terminationVariable = "GORUN_TERMINATION_GRACE_PERIOD_SECONDS"

// termination reads terminationVariable; 0: it is not set.
func termination(lookup func(string) (string, bool)) (time.Duration, error) {
	text, ok := lookup(terminationVariable)
	if !ok || text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil || seconds == 0 {
		return 0, fmt.Errorf("%s=%s: want the pod's terminationGracePeriodSeconds, a number such as 30", terminationVariable, oneWord(text))
	}
	return time.Duration(seconds) * time.Second, nil
}

// meetPods finds the names of pods. Only the name of its own pod tells a process that of the Job.
func meetPods(t *Task, count int, here Machine) (Meeting, error) {
	const otherwise = "; or say where the nodes meet, with --rdzv-endpoint"
	own, err := here.podName()
	if err != nil {
		return Meeting{}, fmt.Errorf("%s: %w"+otherwise, t.Name, err)
	}
	job, names, err := podNames(own, t.Node, count)
	if err != nil {
		return Meeting{}, fmt.Errorf("%w"+otherwise, err)
	}
	const source = "this pod's name in /etc/hosts"
	return Meeting{Hosts: names, HostSource: source, Job: job, JobSource: "this pod's name"}, nil
}

// podName returns the full name of this pod, which Kubernetes writes to /etc/hosts if the pod has a subdomain, or else the name alone.
func (here Machine) podName() (string, error) {
	name, err := here.Hostname()
	if err != nil || strings.Contains(name, ".") {
		return name, err
	}
	file, err := here.Root.Open("etc/hosts")
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	return nameIn(file, name)
}

// nameIn returns the first name in a hosts file that begins with name and a dot, or else name.
func nameIn(file fs.File, name string) (string, error) {
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		for _, full := range fields[min(1, len(fields)):] {
			if strings.HasPrefix(full, name+".") {
				return full, nil
			}
		}
	}
	return name, lines.Err()
}

// podNames returns the names of the first count pods of an Indexed Job, or of one job of a JobSet. own is the full name of the pod with
// this index, such as train-3.train.default.svc.cluster.local: the first label ends with the index. job is the name without the index, and
// without what follows the first dot.
func podNames(own string, index, count int) (job string, names []string, err error) {
	first, domain, found := strings.Cut(own, ".")
	job, ok := strings.CutSuffix(first, "-"+strconv.Itoa(index))
	switch {
	case !ok || job == "":
		return "", nil, fmt.Errorf("this pod is called %.253q, and its index is %d (JOB_COMPLETION_INDEX): want a name that ends with -%d before the first dot", own, index, index)
	case !found:
		return "", nil, fmt.Errorf("pod %s has no name that other pods can look up: give the Job a headless service, and the service's name to its pods as subdomain", first)
	}
	for i := range count {
		names = append(names, job+"-"+strconv.Itoa(i)+"."+domain)
	}
	return job, names, nil
}
