// Command apiserver starts a Kubernetes API server, with JobSet's resource, and asks it whether it would take the documents of manifests. It
// rejects wrong values, which decoding alone does not find. check-manifests --server runs it:
//
//	go run -C scripts/check-manifests . --server $PWD/docs/clusters/kubernetes-*.yaml
//
// The server is in this process, ends with it, and lets nobody else in. Nothing is stored in it. It is a module of its own, because
// compiling it takes minutes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	dir, err := os.MkdirTemp("", "apiserver")
	if err == nil {
		interrupts := make(chan os.Signal, 1)
		signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
		go func() {
			<-interrupts
			_ = os.RemoveAll(dir)
			os.Exit(1)
		}()
		err = run(context.Background(), dir, os.Args[1:])
		_ = os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, files []string) error {
	s, err := start(ctx, dir)
	if err != nil {
		return fmt.Errorf("cannot start the API server: %w", err)
	}
	defer s.stop()
	var errs []error
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err == nil {
			err = s.check(ctx, name, text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
