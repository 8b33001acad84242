package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/rendezvous"
)

// TestLaunchRecord: a record has what the nodes get, and nothing more; jobs that do not need one have none.
func TestLaunchRecord(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	ca, err := filepath.Abs("ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	chosen := []rendezvous.Endpoint{{Host: "10.0.0.1", Port: 30000}, {Host: "fd00::1", Port: 30001}}
	for name, c := range map[string]struct {
		hosts string
		flags map[string]string
		want  *control.Record // with the token "" for a random one
	}{
		"chosen":        {"a,b", nil, &control.Record{Backend: "embedded", Endpoint: "10.0.0.1:30000,[fd00::1]:30001"}},
		"given":         {"a,b", map[string]string{"rdzv-endpoint": "a"}, &control.Record{Backend: "embedded", Endpoint: "a:29400"}},
		"own token":     {"a,b", map[string]string{"rdzv-endpoint": "a", "rdzv-token-file": token}, &control.Record{Backend: "embedded", Endpoint: "a:29400", Token: "0123456789abcdef"}},
		"own etcd":      {"a,b", map[string]string{"rdzv-backend": "etcd", "rdzv-id": "x", "rdzv-endpoint": "e"}, &control.Record{Backend: "etcd", Endpoint: "e:2379"}},
		"etcd by token": {"a,b", map[string]string{"rdzv-backend": "etcd", "rdzv-id": "x", "rdzv-endpoint": "e", "rdzv-token-file": token}, &control.Record{Backend: "etcd", Endpoint: "e:2379", TokenFile: token}},
		"certificates": {
			"a,b", map[string]string{"rdzv-backend": "etcd", "rdzv-id": "x", "rdzv-endpoint": "e", "rdzv-conf": "ca_cert=ca.pem,etcd_prefix=/x"},
			&control.Record{Backend: "etcd", Endpoint: "e:2379", Conf: map[string]string{"ca_cert": ca, "etcd_prefix": "/x"}},
		},
		"static":    {"a,b", map[string]string{"rdzv-backend": "static"}, nil},
		"one node":  {"a", nil, nil},
		"all here":  {"localhost,127.0.0.1", nil, nil},
		"half here": {"localhost,b", nil, &control.Record{Backend: "embedded", Endpoint: "10.0.0.1:30000,[fd00::1]:30001"}},
	} {
		all := make(values)
		for flag, text := range c.flags {
			all.orElse(flag, text)
		}
		here := bare()
		here.launched = true
		l, err := newLaunchPlan(here, launchFlags{hosts: c.hosts, rsh: defaultShell}, all, []string{"train"}, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		config, err := l.config()
		if err != nil {
			t.Fatal(err)
		}
		var endpoints []rendezvous.Endpoint
		if l.meets {
			endpoints = chosen
		}
		got, err := l.record(config.IsSelf, endpoints)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.want != nil {
			c.want.Job = l.runID
			if c.want.Token == "" && c.want.Backend == "embedded" {
				c.want.Token = l.token
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
