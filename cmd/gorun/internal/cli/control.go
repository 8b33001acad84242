package cli

import (
	"log/slog"
	"os"
	"strings"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// control makes config let people see and steer the job. It listens while the job starts, which does not wait for it.
func (o *options) control(config *agent.Config, logger *slog.Logger) *control.Server {
	config.Spec.Recent = launcher.NewRecent(o.nproc)
	server := control.New(control.Config{Recent: config.Spec.Recent})
	config.Commands, config.Publish = server.Commands(), server.Publish
	config.Status = status.Node{Gorun: version, Pid: os.Getpid(), Endpoint: o.meetingPoint()}
	go func() {
		if err := server.Listen(o.runID); err != nil {
			logger.Warn("gorun status will not find this job: it has no socket", "error", err)
		}
	}()
	return server
}

// meetingPoint is where the nodes of the job meet; empty: it has one node.
func (o *options) meetingPoint() string {
	switch {
	case o.elastic():
		var list []string
		for _, e := range o.endpoints {
			list = append(list, e.String())
		}
		return strings.Join(list, ",")
	case o.nnodes > 1:
		return rendezvous.Endpoint{Host: o.master.Addr, Port: o.master.Port}.String()
	default:
		return ""
	}
}
