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

// timerFile returns the file in which workers may set timers, according to torchrun's variables. It is fresh if they
// name no file, or the file of a launcher whose worker this gorun is. It is empty if timers are off.
func timerFile(fresh string) string {
	name, isWorker := os.Getenv("TORCHELASTIC_TIMER_FILE"), os.Getenv("TORCHELASTIC_RUN_ID") != ""
	switch {
	case os.Getenv("TORCHELASTIC_ENABLE_FILE_TIMER") != "1":
		return ""
	case name == "" || isWorker:
		return fresh
	default:
		return name
	}
}
