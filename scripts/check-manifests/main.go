// Command check-manifests decodes Kubernetes manifests as strictly as an API server does: it finds fields that do not exist, or that are
// of another type. It is a module of its own, so that gorun does not depend on Kubernetes.
//
//	go run -C scripts/check-manifests . ../../docs/clusters/*.yaml
//
// With --server URL and the variable KUBE_TOKEN, it also asks an API server (dryRun=All, fieldValidation=Strict), which rejects values
// that are wrong.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"
)

// A resource is a kind of document: what it decodes into, and where an API server takes it.
type resource struct {
	decode any
	path   string
}

func resourceOf(version, kind string) (resource, error) {
	switch version + " " + kind {
	case "v1 Service":
		return resource{new(core.Service), "/api/v1/namespaces/default/services"}, nil
	case "v1 Secret":
		return resource{new(core.Secret), "/api/v1/namespaces/default/secrets"}, nil
	case "batch/v1 Job":
		return resource{new(batch.Job), "/apis/batch/v1/namespaces/default/jobs"}, nil
	case "jobset.x-k8s.io/v1alpha2 JobSet":
		return resource{new(jobset.JobSet), "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"}, nil
	}
	return resource{}, fmt.Errorf("apiVersion %q, kind %q: add its type to scripts/check-manifests", version, kind)
}

func main() {
	server := flag.String("server", "", "URL of an API server that is asked as well")
	flag.Parse()
	failed := flag.NArg() == 0
	if failed {
		fmt.Fprintln(os.Stderr, "usage: check-manifests [--server URL] FILE...")
	}
	for _, name := range flag.Args() {
		if err := checkFile(name, *server); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

var separator = regexp.MustCompile(`(?m)^---\s*$`)

func checkFile(name, server string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for i, doc := range separator.Split(string(text), -1) {
		if err := check([]byte(doc), server); err != nil {
			return fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	return nil
}

func check(doc []byte, server string) error {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return err
	}
	r, err := resourceOf(head.APIVersion, head.Kind)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(doc, r.decode); err != nil {
		return err
	}
	if server == "" {
		return nil
	}
	return ask(server+r.path, doc)
}

// ask asks an API server whether it would take the document.
func ask(url string, doc []byte) error {
	request, err := http.NewRequest(http.MethodPost, url+"?dryRun=All&fieldValidation=Strict", bytes.NewReader(doc))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/yaml")
	request.Header.Set("Authorization", "Bearer "+os.Getenv("KUBE_TOKEN"))
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // one that runs for a test
	}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil || response.StatusCode < 300 {
		return err
	}
	var status struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &status)
	return fmt.Errorf("%s: %s", response.Status, status.Message)
}
