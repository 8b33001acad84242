// Command check-manifests decodes Kubernetes manifests into Kubernetes' own types: a field that does not exist, or is of another type, is an
// error. It is a module of its own, so that gorun does not depend on Kubernetes.
//
//	go run -C scripts/check-manifests . $PWD/docs/clusters/kubernetes-*.yaml
package main

import (
	"fmt"
	"os"
	"strings"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"
)

// types are those of the documents that docs/clusters has, by version and kind.
var types = map[string]any{
	"v1 Service":                      &core.Service{},
	"v1 Secret":                       &core.Secret{},
	"batch/v1 Job":                    &batch.Job{},
	"jobset.x-k8s.io/v1alpha2 JobSet": &jobset.JobSet{},
}

func main() {
	for _, name := range os.Args[1:] {
		text, err := os.ReadFile(name)
		for doc := range strings.SplitSeq(string(text), "\n---\n") {
			if err == nil {
				err = check([]byte(doc))
			}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

func check(doc []byte) error {
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return err
	}
	value, ok := types[head.APIVersion+" "+head.Kind]
	if !ok {
		return fmt.Errorf("apiVersion %q, kind %q: add its type to scripts/check-manifests", head.APIVersion, head.Kind)
	}
	return yaml.UnmarshalStrict(doc, value)
}
