package cli

import (
	"strings"

	"github.com/gorun/gorun/cmd/gorun/internal/launch"
	"github.com/gorun/gorun/rendezvous"
)

// A launchDocument is what --dry-run --json prints.
type launchDocument struct {
	RunID string           `json:"run_id"`
	Dir   string           `json:"dir"`
	Hosts []launchHostPlan `json:"hosts"`
}

// A launchHostPlan is what would be started for a host.
type launchHostPlan struct {
	Host  string   `json:"host"`
	Shell []string `json:"remote_shell"` // empty: the host is this machine
	Argv  []string `json:"argv"`         // of gorun there
}

// document returns what --dry-run prints.
func (l *launchPlan) document() (d launchDocument, err error) {
	c, err := l.config()
	if err != nil {
		return d, err
	}
	var endpoints []rendezvous.Endpoint
	if l.meets {
		endpoints = []rendezvous.Endpoint{{Host: later}}
	}
	d = launchDocument{RunID: l.runID, Dir: l.dir}
	for i, h := range c.Hosts {
		p := launchHostPlan{Host: h.Name, Argv: append([]string{"gorun"}, l.nodeArgs(i, endpoints)...)}
		if !c.IsSelf[i] {
			p.Shell = c.Shell.Argv(h, launch.ProxyCommand(c.Path))
		}
		for k, arg := range p.Argv {
			if strings.HasPrefix(arg, "--rdzv-endpoint=["+later) || strings.HasPrefix(arg, "--rdzv-endpoint="+later) {
				p.Argv[k] = "--rdzv-endpoint=" + later
			}
		}
		d.Hosts = append(d.Hosts, p)
	}
	return d, nil
}

// text returns the command lines for people.
func (d launchDocument) text() string {
	var b strings.Builder
	for _, p := range d.Hosts {
		if p.Shell != nil {
			b.WriteString(shell(p.Shell) + "\n")
		}
		b.WriteString(p.Host + ": " + shell(p.Argv) + "\n")
	}
	return b.String()
}
