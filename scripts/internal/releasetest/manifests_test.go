package releasetest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// kubernetes has the fields of types, with their types, and the type of a document by its version and kind.
type kubernetes map[string]map[string]string

func readKubernetes(t *testing.T) kubernetes {
	t.Helper()
	text, err := os.ReadFile("testdata/kubernetes.txt")
	if err != nil {
		t.Fatal(err)
	}
	k, fields := kubernetes{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		if line[0] != ' ' {
			fields = map[string]string{}
			k[strings.TrimSpace(line)] = fields
			continue
		}
		for _, f := range strings.Fields(line) {
			name, kind, _ := strings.Cut(f, ":")
			fields[name] = kind
		}
	}
	return k
}

var versions = map[string]string{"Service": "v1", "Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2"}

// check returns what is wrong with a value of a type.
func (k kubernetes) check(at string, n *yaml.Node, kind string) error {
	wrong := fmt.Errorf("line %d: %s is no %s", n.Line, at, kind)
	element, list := strings.CutPrefix(kind, "[]")
	value, isMap := strings.CutPrefix(kind, "{}")
	fields, known := k[kind]
	var errs []error
	switch {
	case list && n.Kind == yaml.SequenceNode:
		for i, e := range n.Content {
			errs = append(errs, k.check(fmt.Sprintf("%s[%d]", at, i), e, element))
		}
	case list, n.Kind == yaml.SequenceNode:
		return wrong
	case n.Kind == yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			name := n.Content[i].Value
			field, ok := fields[name]
			if isMap {
				field, ok = value, true
			}
			if !ok && known {
				return fmt.Errorf("line %d: %s has no field %s", n.Content[i].Line, at, name)
			} else if !ok {
				return fmt.Errorf("%w, or add the fields of that type to testdata/kubernetes.txt", wrong)
			}
			errs = append(errs, k.check(at+"."+name, n.Content[i+1], field))
		}
	case kind == "scalar" && (n.Tag == "!!int" || n.Tag == "!!float" || n.Tag == "!!str"):
	case map[string]string{"int": "!!int", "string": "!!str", "bool": "!!bool"}[kind] != n.Tag:
		return wrong
	}
	return errors.Join(errs...)
}

// documents checks all documents of a file, which has at least one.
func (k kubernetes) documents(text []byte) error {
	for d, n := yaml.NewDecoder(bytes.NewReader(text)), 0; ; n++ {
		var doc yaml.Node
		var head struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
		}
		if err := d.Decode(&doc); errors.Is(err, io.EOF) && n > 0 {
			return nil
		} else if err := errors.Join(err, doc.Decode(&head)); err != nil {
			return err
		}
		if versions[head.Kind] != head.APIVersion || k[head.Kind] == nil {
			return fmt.Errorf("apiVersion %s, kind %s: testdata/kubernetes.txt has no such type", head.APIVersion, head.Kind)
		}
		if err := k.check(head.Kind, doc.Content[0], head.Kind); err != nil {
			return err
		}
	}
}

// TestManifests: the manifests of docs/clusters have fields that exist, and are of the right types.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob("../../../docs/clusters/kubernetes-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	k := readKubernetes(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.documents(text); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
}

// TestManifestsRefuse: mistakes are found.
func TestManifestsRefuse(t *testing.T) {
	k := readKubernetes(t)
	for spec, want := range map[string]string{
		"{clusterIP: None, ports: []}": "",
		"{clusterIp: None}":            "line 1: Service.spec has no field clusterIp",
		"{clusterIP: 3}":               "line 1: Service.spec.clusterIP is no string",
		"{clusterIP: {a: b}}":          "line 1: Service.spec.clusterIP is no string",
		"{externalIPs: a}":             "line 1: Service.spec.externalIPs is no []string",
		"{externalIPs: [[a]]}":         "line 1: Service.spec.externalIPs[0] is no string",
		"{selector: {job-name: true}}": "line 1: Service.spec.selector.job-name is no string",
		"[]":                           "line 1: Service.spec is no ServiceSpec",
		"a":                            "line 1: Service.spec is no ServiceSpec",
	} {
		err := k.documents([]byte("{apiVersion: v1, kind: Service, spec: " + spec + "}"))
		if got := fmt.Sprint(err); !strings.HasPrefix(got, want) || (err == nil) != (want == "") {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}
