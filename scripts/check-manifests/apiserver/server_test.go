package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestManifests: the server takes the manifests of docs/clusters, and rejects them with values that are wrong, though they can be decoded.
func TestManifests(t *testing.T) {
	s, err := start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	files, err := filepath.Glob("../../../docs/clusters/kubernetes-*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	texts := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = s.check(t.Context(), file, text)
		}
		if err != nil {
			t.Error(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	decoder := exec.CommandContext(t.Context(), "go", "run", "-C", "..", ".")
	for i, c := range []struct{ file, right, wrong, want string }{
		{"kubernetes-job.yaml", "clusterIP: None", "clusterIP: Nowhere", "document 1: "},
		{"kubernetes-job.yaml", "completions: 4", "completions: -4", "document 2: "},
		{"kubernetes-job.yaml", "restartPolicy: Never", "restartPolicy: Always", "document 2: "},
		{"kubernetes-job.yaml", "subdomain: train", "subdomain: Train", "document 2: "},
		{"kubernetes-job.yaml", "mountPath: /dev/shm", "mountPath: \"\"", "document 2: "},
		{"kubernetes-jobset.yaml", "{maxRestarts: 3}", "{maxRestarts: 3, restartStrategy: Never}", "document 1: "},
	} {
		text := strings.Replace(texts[c.file], c.right, c.wrong, 1)
		if text == texts[c.file] {
			t.Errorf("%s does not have %q", c.file, c.right)
		}
		if err := s.check(t.Context(), c.file, []byte(text)); err == nil || !strings.HasPrefix(err.Error(), c.file+": "+c.want) {
			t.Errorf("%s with %s: %v, want an error that begins with %q", c.file, c.wrong, err, c.want)
		} else {
			t.Log(err)
		}
		file := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		decoder.Args = append(decoder.Args, file)
	}
	if out, err := decoder.CombinedOutput(); err != nil {
		t.Errorf("check-manifests without --server: %v\n%s", err, out)
	}
}
