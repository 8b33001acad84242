package manager

import (
	"fmt"
	"strconv"
	"strings"
)

var kubernetes = &Manager{Name: "Kubernetes", Pods: true, find: findKubernetes}

// findKubernetes reads what an Indexed Job has set. It does not say how many pods there are.
func findKubernetes(v *variables) *Task {
	if !v.has("JOB_COMPLETION_INDEX") {
		return nil
	}
	return &Task{ID: "job", Node: v.number("JOB_COMPLETION_INDEX"), LocalSize: 1, Sources: Sources{Node: "JOB_COMPLETION_INDEX"}}
}

// PodNames returns the names of the first count pods of an Indexed Job, or of one job of a JobSet. own is the full name of the pod with
// this index, such as train-3.train.default.svc.cluster.local: the first label ends with the index. job is the name without the index, and
// without what follows the first dot.
func PodNames(own string, index, count int) (job string, names []string, err error) {
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
