package main

import (
	"context"
	"os"
	"runtime"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/rendezvous/etcd"
)

// A state is what there is at one time.
type state struct {
	After       string
	Goroutines  int
	Descriptors int
	HeapMiB     float64
	Keys        int64
	DataMiB     float64 // in etcd, compacted
	FileMiB     float64 // of etcd, which it does not give back
}

// state is what there is now. What etcd has of the past is thrown away before.
func (s *store) state(ctx context.Context, after, job string) (state, error) {
	status, err := s.own.Status(ctx, s.endpoint)
	if err != nil {
		return state{}, err
	}
	st := state{After: after, FileMiB: mib(status.DbSize)}
	answer, err := s.own.Get(ctx, etcd.DefaultPrefix+job, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return state{}, err
	}
	st.Keys = answer.Count
	if _, err := s.own.Compact(ctx, answer.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return state{}, err
	}
	if status, err = s.own.Status(ctx, s.endpoint); err != nil {
		return state{}, err
	}
	st.DataMiB = mib(status.DbSizeInUse)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	st.HeapMiB = mib(int64(m.HeapAlloc))
	st.Goroutines = fewestGoroutines()
	files, err := os.ReadDir("/proc/self/fd")
	st.Descriptors = len(files)
	return st, err
}

// fewestGoroutines is how few there are at any time within a second.
// A call that is under way has some for a moment, and after a round all nodes may call at once; what has leaked stays.
func fewestGoroutines() int {
	fewest := runtime.NumGoroutine()
	for range 100 {
		time.Sleep(10 * time.Millisecond)
		fewest = min(fewest, runtime.NumGoroutine())
	}
	return fewest
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// descriptors is how many this process may have.
func descriptors() int {
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) // never fails
	return int(limit.Cur)
}

// cpu is how many seconds processors have worked for this process.
func cpu() float64 {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used) // never fails
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}
