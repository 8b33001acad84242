package hang

import "context"

// Doing asks the worker with this progress file what it does, or did last, in words; empty: it does not say. Only workers that use package
// comm do.
func Doing(ctx context.Context, file string) string {
	status, _ := ask(ctx, Worker{File: file}, false)
	if status == nil {
		return ""
	}
	return status.Activity
}
