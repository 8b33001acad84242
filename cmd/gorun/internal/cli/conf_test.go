package cli

import (
	"testing"
	"time"
)

// TestConf: what torchrun's keys come to, and gorun's own.
func TestConf(t *testing.T) {
	const joinDefault = 10 * time.Minute
	for text, want := range map[string]struct {
		ttl, join time.Duration
		prefix    string
	}{
		"":                         {10 * time.Second, joinDefault, ""},
		"ttl=3.5":                  {3500 * time.Millisecond, joinDefault, ""},
		"ttl=0.1":                  {time.Second, joinDefault, ""},
		"keep_alive_interval=5":    {15 * time.Second, joinDefault, ""},
		"keep_alive_max_attempt=2": {10 * time.Second, joinDefault, ""},
		"keep-alive-interval=2,keep-alive-max-attempt=4": {8 * time.Second, joinDefault, ""},
		"keep_alive_interval=2,ttl=30":                   {30 * time.Second, joinDefault, ""},
		"timeout=900":                                    {10 * time.Second, 15 * time.Minute, ""},
		"timeout=900,join_timeout=60":                    {10 * time.Second, time.Minute, ""},
		"etcd_prefix=/team":                              {10 * time.Second, joinDefault, "/team/"},
		"etcd-prefix='/team/'":                           {10 * time.Second, joinDefault, "/team/"},
	} {
		var o options
		if err := setConf(&o, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		c := o.etcdConfig()
		if c.Lease != want.ttl || c.JoinTimeout != want.join || c.Prefix != want.prefix {
			t.Errorf("%s: ttl %v, join timeout %v, prefix %q, want %v", text, c.Lease, c.JoinTimeout, c.Prefix, want)
		}
	}
}

// TestSettingsOfAJob: what the nodes of a job must have the same is told to the rendezvous, which refuses others.
func TestSettingsOfAJob(t *testing.T) {
	args := []string{"--nnodes=2", "--rdzv-backend=embedded", "--rdzv-endpoint=localhost", "x"}
	settings := func(more ...string) map[string]string {
		o, _, err := parse(t, append(more, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return o.etcdConfig().Settings
	}
	plain, secured, replacing := settings(), settings("--worker-tls"), settings("--on-failure=replace")
	if plain["gorun"] != version || plain["worker_tls"] != "false" || secured["worker_tls"] != "true" {
		t.Errorf("the settings are %v, and with --worker-tls %v", plain, secured)
	}
	if watched := settings("--hang-timeout=60"); plain["hang_timeout"] != "0s" || watched["hang_timeout"] != "1m0s" {
		t.Errorf("the settings are %v, and with --hang-timeout=60 %v", plain, watched)
	}
	if plain["on_failure"] != "restart" || replacing["on_failure"] != "replace" {
		t.Errorf("the settings are %v, and with --on-failure=replace %v", plain, replacing)
	}
}
