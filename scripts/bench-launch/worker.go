package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const workerArg = "as-worker"

// began is taken as early as a Go program can.
var began = time.Now()

// work is the main function of a worker: it writes to dir when it began, and then does what todo says.
func work(dir string, todo []string) {
	rank := "0"
	for _, name := range []string{"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"} {
		if v, ok := os.LookupEnv(name); ok {
			rank = v
			break
		}
	}
	attempt := attemptIn(dir)
	if err := stamp(dir, "began-"+attempt+"-"+rank+"-of-"+os.Getenv("WORLD_SIZE"), began); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	switch strings.Join(todo[:1], "") {
	case "die": // one dies by SIGKILL once all have begun, and the others wait for their end
		if attempt != "0" {
			return
		}
		if rank == "0" {
			await(dir, "began-0-*", 4)
			_ = stamp(dir, "died", time.Now())
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		time.Sleep(time.Hour)
	case "write":
		n, _ := strconv.Atoi(todo[1])
		out := bufio.NewWriterSize(os.Stdout, 32<<10)
		for i := range n {
			_, _ = fmt.Fprintf(out, "step %d of a worker that has something to say, as training programs do\n", i)
		}
		_ = out.Flush()
	case inGo:
		if err := computeTogether(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "wait":
		await(dir, "measured", 1)
	}
}

// await waits until n files match.
func await(dir, pattern string, n int) { awaitUntil(context.Background(), dir, pattern, n) }

// awaitUntil gives up when ctx ends.
func awaitUntil(ctx context.Context, dir, pattern string, n int) {
	for ctx.Err() == nil {
		if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) >= n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
