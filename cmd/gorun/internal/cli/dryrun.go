package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/job"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/launcher/topology"
	"github.com/gorun/gorun/rendezvous"
)

// A document is what --dry-run prints: what this node would start in its first round.
type document struct {
	Inferred    *inferred    `json:"inferred,omitempty"`
	RunID       string       `json:"run_id"`
	Supposing   string       `json:"supposing,omitempty"`
	Nodes       int          `json:"nodes"`
	NodeRank    int          `json:"node_rank"`
	WorldSize   int          `json:"world_size"`
	Source      string       `json:"source,omitempty"`    // Go source that the program is built from first
	Directory   string       `json:"directory,omitempty"` // of the workers, if the user has chosen it
	Settings    []string     `json:"settings,omitempty"`  // those of the environment
	MaxRestarts int          `json:"max_restarts"`
	Grace       float64      `json:"shutdown_timeout_seconds"`
	Workers     []planWorker `json:"workers"`
}

type planWorker struct {
	Rank      int               `json:"rank"`
	LocalRank int               `json:"local_rank"`
	Argv      []string          `json:"argv"`
	Env       map[string]string `json:"env"` // who the worker is, and what else differs from gorun's own
	CPUs      []int             `json:"cpus,omitempty"`
	MemNodes  []int             `json:"memory_nodes,omitempty"`
}

// What a dry run prints for values that it does not know or show.
const (
	later  = "(chosen at the start)"
	hidden = "(hidden)"
)

// dryRun prints the plan of the job. It reserves no port and makes no file.
func dryRun(ctx context.Context, o *options, p *job.Plan, out io.Writer) error {
	round, err := p.FirstRound(ctx, o.nnodes, hidden)
	if err != nil {
		return err
	}
	d := newDocument(p.Agent, round, os.Environ())
	d.Source, d.Directory, d.Inferred, d.Settings = p.Program.Source, o.workDir, o.inferred, o.settings
	if p.Etcd != nil {
		d.Supposing = fmt.Sprintf("%d nodes like this one meet, and this is number %d of them", round.Size, round.Self)
	}
	return show(out, o.json, d, d.text)
}

func newDocument(c agent.Config, round *rendezvous.Round, environ []string) document {
	p := document{
		RunID: c.RunID, Nodes: round.Size, NodeRank: round.Self, MaxRestarts: c.MaxRestarts,
		WorldSize: round.Place.WorldSize, Grace: c.Spec.Grace.Seconds(),
	}
	own, told := make(map[string]bool), make(map[string]bool)
	for _, kv := range environ {
		own[kv] = true
	}
	for _, name := range env.Names() {
		told[name] = true
	}
	hosted := round.Size == 1 // a store that is there only once the job runs
	spec := agent.Plan(c, round)
	for local, w := range spec.Workers {
		if w.Argv == nil {
			w.Argv = spec.Argv
		}
		environ := make(map[string]string)
		for _, kv := range w.Env {
			if name, value, _ := strings.Cut(kv, "="); told[name] || !own[kv] {
				environ[name] = shown(name, value, hosted)
			}
		}
		environ["GORUN_PROGRESS_FILE"] = later
		if c.Spec.Apart {
			environ["GORUN_ROUND_SOCKET"] = later
		}
		p.Workers = append(p.Workers, planWorker{Rank: w.Rank, LocalRank: local, Argv: w.Argv, Env: environ, CPUs: w.CPUs, MemNodes: w.MemNodes})
	}
	return p
}

// shown returns what a plan shows as a variable's value.
func shown(name, value string, hosted bool) string {
	switch {
	case name == "GORUN_TOKEN" && value != "":
		return hidden
	case name == "MASTER_PORT" && value == "0", name == "MASTER_ADDR" && value == "", name == "GORUN_STORE_ADDR" && hosted, name == "TORCHELASTIC_ERROR_FILE" && value == "":
		return later
	default:
		return value
	}
}

// text returns the plan for people.
func (p document) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	first, last := p.Workers[0], p.Workers[len(p.Workers)-1]
	line("job %s: node %d of %d, ranks %d to %d of %d", quote(p.RunID), p.NodeRank, p.Nodes, first.Rank, last.Rank, p.WorldSize)
	if p.Inferred != nil {
		line("from %s", p.Inferred.text())
	}
	for _, s := range p.Settings {
		line("from %s", s)
	}
	if p.Supposing != "" {
		line("supposing that %s", p.Supposing)
	}
	if p.Source != "" {
		line("built from: %s", quote(p.Source))
	}
	same := func(w planWorker) bool { return slices.Equal(w.Argv, first.Argv) }
	if !slices.ContainsFunc(p.Workers, func(w planWorker) bool { return !same(w) }) {
		line("command: %s", shell(first.Argv))
	}
	if p.Directory != "" {
		line("directory: %s", quote(p.Directory))
	}
	line("restarts: %d; time to stop: %g s", p.MaxRestarts, p.Grace)
	common := maps.Clone(first.Env)
	for _, w := range p.Workers {
		maps.DeleteFunc(common, func(name, value string) bool { return w.Env[name] != value })
	}
	line("\nenvironment of every worker, beside what is inherited:")
	for _, name := range slices.Sorted(maps.Keys(common)) {
		line("  %s=%s", name, readable(common[name]))
	}
	line("\nworkers:")
	for _, w := range p.Workers {
		line("  rank %d%s", w.Rank, w.details(common))
		if !same(w) || !same(last) {
			line("    %s", shell(w.Argv))
		}
	}
	return b.String()
}

func readable(value string) string {
	if value == later || value == hidden {
		return value
	}
	return quote(value)
}

// details returns what distinguishes a worker from the others.
func (w planWorker) details(common map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(w.Env)) {
		if _, ok := common[name]; !ok {
			parts = append(parts, name+"="+readable(w.Env[name]))
		}
	}
	text := ""
	if len(parts) > 0 {
		text = ": " + strings.Join(parts, " ")
	}
	if len(w.CPUs) > 0 {
		text += "; CPUs " + topology.FormatList(w.CPUs)
	}
	if len(w.MemNodes) > 0 {
		text += "; memory of node " + topology.FormatList(w.MemNodes)
	}
	return text
}

// shell quotes a command so that a shell would read it back.
func shell(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words[i] = arg
	}
	return strings.Join(words, " ")
}
