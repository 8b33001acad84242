package affinity

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// helper is the variable that makes this program bind itself instead of running tests. It says which thread has been bound before.
const helper = "GORUN_TEST_AFFINITY"

func TestMain(m *testing.M) {
	if share := os.Getenv(helper); share != "" {
		if err := bindMany(share); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// bindMany binds this process, which has a thread that is bound to processor 1 and several that are starting others, and prints the
// processors of each thread.
func bindMany(share string) error {
	stop := make(chan struct{})
	var all, ready sync.WaitGroup
	thread := func(f func()) {
		ready.Add(1)
		all.Go(func() {
			runtime.LockOSThread()
			f()
			ready.Done()
			<-stop
		})
	}
	thread(func() {
		var one unix.CPUSet
		one.Set(1)
		_ = unix.SchedSetaffinity(0, &one)
	})
	ready.Wait()
	for range 20 {
		thread(func() {})
	}
	if err := Bind(share); err != nil {
		return err
	}
	ready.Wait()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		status, _ := os.ReadFile("/proc/self/task/" + t.Name() + "/status") // of one that has ended, there is none
		for line := range strings.Lines(string(status)) {
			if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:\t"); ok {
				fmt.Print(list)
			}
		}
	}
	close(stop)
	all.Wait()
	return nil
}

// Calls binds the thread that is in a call, and no other one, until the call ends.
func TestCalls(t *testing.T) {
	processors := func() (set unix.CPUSet) {
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Error(err)
		}
		return set
	}
	everything := processors()
	if !everything.IsSet(0) || everything.Count() < 2 || everything.Count() != runtime.NumCPU() || !everything.IsSet(runtime.NumCPU()-1) {
		t.Skip("this test takes the processors from 0 on, and two of them")
	}
	enter, err := Calls(fmt.Sprintf("0/0-%d", runtime.NumCPU()-1))
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // so that it is the same thread after the call
	defer runtime.UnlockOSThread()
	leave := enter()
	in := processors()
	elsewhere := make(chan unix.CPUSet)
	go func() {
		runtime.LockOSThread() // a thread that is not the one in the call
		defer runtime.UnlockOSThread()
		elsewhere <- processors()
	}()
	other := <-elsewhere
	leave()
	if in.Count() != 1 || !in.IsSet(0) || other != everything || processors() != everything {
		t.Errorf("in a call %v, elsewhere %v, after it %v; want 0, and %v", in, other, processors(), everything)
	}
	if enter, err := Calls(""); enter != nil || err != nil {
		t.Errorf("without a share: %v", err)
	}
}

// All threads are bound, also those that start meanwhile, except for one that has been bound by somebody else.
func TestBind(t *testing.T) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil || !allowed.IsSet(0) || !allowed.IsSet(1) || allowed.Count() != runtime.NumCPU() {
		t.Skip("this test takes processors 0 and 1")
	}
	all := fmt.Sprintf("0-%d", runtime.NumCPU()-1)
	if runtime.NumCPU() == 1 || !allowed.IsSet(runtime.NumCPU()-1) {
		t.Skip("this test takes the processors from 0 on")
	}
	for _, c := range []struct {
		share string
		want  []string // of all threads
	}{
		{"0/" + all, []string{"0", "1"}},
		{"0/0-500", []string{all, "1"}}, // somebody else has bound the process
		{all + "/" + all, []string{all, "1"}},
	} {
		for range 5 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), helper+"="+c.share)
			out, err := cmd.CombinedOutput()
			threads := strings.Fields(string(out))
			if len(threads) < 20 || err != nil {
				t.Fatalf("%s: %v: %s", c.share, err, out)
			}
			slices.Sort(threads)
			if got := slices.Compact(threads); !slices.Equal(got, c.want) {
				t.Errorf("share %s: threads have %v, want %v", c.share, got, c.want)
			}
		}
	}
}
