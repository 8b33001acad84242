package hang

import (
	"context"

	"github.com/gorun/gorun/env/progress"
)

// Ask asks the worker with this progress file what it does; nil: it does not say. Only workers that use package comm do.
func Ask(ctx context.Context, file string) *progress.Status {
	status, _ := ask(ctx, Worker{File: file}, false)
	return status
}
