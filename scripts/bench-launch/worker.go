package main

import (
	"bufio"
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

// work is a worker's main: it says in dir when it began, and then does what it is told.
func work(dir string, todo []string) {
	rank := "0"
	for _, name := range []string{"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"} {
		if v, ok := os.LookupEnv(name); ok {
			rank = v
			break
		}
	}
	attempt := os.Getenv("TORCHELASTIC_RESTART_COUNT")
	stamp := filepath.Join(dir, "began-"+attempt+"-"+rank)
	if err := os.WriteFile(stamp, []byte(strconv.FormatInt(began.UnixNano(), 10)), 0o600); err != nil {
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
			_ = os.WriteFile(filepath.Join(dir, "died"), []byte(strconv.FormatInt(time.Now().UnixNano(), 10)), 0o600)
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
	case "wait":
		await(dir, "measured", 1)
	}
}

// await waits until so many files match.
func await(dir, pattern string, n int) {
	for {
		if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) >= n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
