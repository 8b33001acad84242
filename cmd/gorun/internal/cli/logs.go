package cli

import (
	"log/slog"
	"os"

	"github.com/gorun/gorun/launcher"
)

// logs creates the log directory of this job, if the user asked for one or the job needs one.
func (o *options) logs(logger *slog.Logger) (launcher.LogSpec, error) {
	spec := launcher.LogSpec{
		Redirect: o.redirects, Tee: o.tee, Discard: o.logDir == os.DevNull,
		StdoutFilters: o.stdoutFilters, StderrFilters: o.stderrFilters,
		MaxSize: o.logMaxSize, Keep: o.logKeep,
	}
	wanted := o.logDir != "" || isUsed(o.redirects) || isUsed(o.tee) || len(o.stdoutFilters)+len(o.stderrFilters) > 0
	if !wanted || spec.Discard {
		return spec, nil
	}
	dir, err := launcher.RunDir(o.path(o.logDir), o.runID)
	if err != nil {
		return spec, usagef("%w", err)
	}
	if o.logDir == "" {
		logger.Info("log files are in " + dir + "; --log-dir chooses another place")
	}
	spec.Dir = dir
	return spec, nil
}

func isUsed(m launcher.StdMap) bool {
	if m.Default != launcher.None {
		return true
	}
	for _, std := range m.Ranks {
		if std != launcher.None {
			return true
		}
	}
	return false
}
