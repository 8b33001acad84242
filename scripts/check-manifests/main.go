// Command check-manifests decodes Kubernetes manifests as strictly as an API server does: it finds fields that do not exist, or that are
// of another type. It is a module of its own, so that gorun does not depend on Kubernetes.
//
//	go run -C scripts/check-manifests . $PWD/docs/clusters/kubernetes-*.yaml
package main

import (
	"fmt"
	"os"
	"regexp"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"
)

// typeOf returns a value of the type into which documents of a kind decode.
func typeOf(version, kind string) (any, error) {
	switch version + " " + kind {
	case "v1 Service":
		return new(core.Service), nil
	case "v1 Secret":
		return new(core.Secret), nil
	case "batch/v1 Job":
		return new(batch.Job), nil
	case "jobset.x-k8s.io/v1alpha2 JobSet":
		return new(jobset.JobSet), nil
	}
	return nil, fmt.Errorf("apiVersion %q, kind %q: add its type to scripts/check-manifests", version, kind)
}

func main() {
	failed := len(os.Args) == 1
	if failed {
		fmt.Fprintln(os.Stderr, "usage: check-manifests FILE...")
	}
	for _, name := range os.Args[1:] {
		if err := checkFile(name); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

var separator = regexp.MustCompile(`(?m)^---\s*$`)

func checkFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for i, doc := range separator.Split(string(text), -1) {
		if err := check([]byte(doc)); err != nil {
			return fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	return nil
}

func check(doc []byte) error {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return err
	}
	value, err := typeOf(head.APIVersion, head.Kind)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(doc, value)
}
