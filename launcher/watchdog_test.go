package launcher

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func timerLine(pid int, scope string, expires float64, signal int) string {
	return fmt.Sprintf(`{"version": 1, "pid": %d, "scope_id": %q, "expiration_time": %f, "signal": %d}`+"\n", pid, scope, expires, signal)
}

func TestParseTimer(t *testing.T) {
	good := strings.TrimSpace(timerLine(42, "train.py#7", 1700000000.5, 9))
	want := timerRequest{42, "train.py#7", 1700000000.5, 9}
	scope := strings.Repeat("s", 4096-len(good)+len("train.py#7"))
	with := func(old, replacement string) string { return strings.Replace(good, old, replacement, 1) }
	for _, tt := range []struct {
		name, line string
		want       timerRequest
	}{
		{"as Python writes it", good, want},
		{"without blanks", strings.ReplaceAll(good, " ", ""), want},
		{"with more in it", with(`"pid"`, `"run_id": "x", "pid"`), want},
		{"as Windows ends lines", good + "\r", want},
		{"a release", with("1700000000.500000", "-1"), timerRequest{42, "train.py#7", -1, 9}},
		{"no signal", with(": 9}", ": 0}"), timerRequest{42, "train.py#7", 1700000000.5, 0}},
		{"less than no signal", with(": 9}", ": -15}"), timerRequest{42, "train.py#7", 1700000000.5, 0}},
		{"after half a line", `{"version": 1, "pi` + good, want},
		{"after a whole one", good + good, want},
		{"after noise", strings.Repeat("\x00", 9000) + good, want},
		{"a brace in the scope", with("train.py#7", "a{b}"), timerRequest{42, "a{b}", 1700000000.5, 9}},
		{"the longest", with("train.py#7", scope), timerRequest{42, scope, 1700000000.5, 9}},
		{"too long", with("train.py#7", scope+"s"), timerRequest{}},
		{"nothing", "", timerRequest{}},
		{"half", good[:40], timerRequest{}},
		{"no object", "[1]", timerRequest{}},
		{"null", "null", timerRequest{}},
		{"another version", with(`"version": 1`, `"version": 2`), timerRequest{}},
		{"no version", with(`"version": 1, `, ""), timerRequest{}},
		{"no pid", with(`"pid": 42, `, ""), timerRequest{}},
		{"a group", with("42", "-42"), timerRequest{}},
		{"everybody", with("42", "0"), timerRequest{}},
		{"a text for a pid", with("42", `"42"`), timerRequest{}},
		{"no scope", with(`"scope_id": "train.py#7", `, ""), timerRequest{}},
		{"no time", with(`"expiration_time": 1700000000.500000, `, ""), timerRequest{}},
		{"no number", with("1700000000.500000", "NaN"), timerRequest{}},
		{"too large a number", with("1700000000.500000", "1e999"), timerRequest{}},
		{"nothing said of a signal", with(`, "signal": 9`, ""), timerRequest{}},
		{"not a signal", with(": 9}", ": 65}"), timerRequest{}},
	} {
		if got, ok := parseTimer([]byte(tt.line)); got != tt.want || ok != (tt.want != timerRequest{}) {
			t.Errorf("%s: %+v %v, want %+v", tt.name, got, ok, tt.want)
		}
	}
}

func FuzzParseTimer(f *testing.F) {
	f.Add([]byte(timerLine(42, "train", 1700000000.5, 9)), int64(0))
	f.Add([]byte(`{"version": 1, "pid": 1, {"version":1,"pid":7,"scope_id":"","expiration_time":-1,"signal":0}`), int64(1e18))
	f.Fuzz(func(t *testing.T, line []byte, now int64) {
		r, ok := parseTimer(line)
		if !ok {
			if r != (timerRequest{}) {
				t.Errorf("refused, but %+v", r)
			}
			return
		}
		if r.pid <= 0 || r.signal < 0 || r.signal > 64 || len(r.scope) > 3*maxRequest {
			t.Errorf("%+v", r)
		}
		if left := r.deadline(time.Unix(0, now)).Sub(time.Unix(0, now)); left.Abs() > farAway*time.Second {
			t.Errorf("%v from now", left)
		}
	})
}

func TestTimers(t *testing.T) {
	epoch := time.Unix(0, 0)
	rapid.Check(t, func(t *rapid.T) {
		ts, model := timers{}, map[timerKey]int{} // deadlines in seconds
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				key := timerKey{rapid.IntRange(1, 3).Draw(t, "pid"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "scope")}
				model[key] = rapid.IntRange(0, 9).Draw(t, "deadline")
				if !ts.set(timer{timerKey: key, deadline: epoch.Add(time.Duration(model[key]) * time.Second)}) {
					t.Fatal("too many")
				}
			},
			"release": func(t *rapid.T) {
				key := timerKey{rapid.IntRange(1, 3).Draw(t, "pid"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "scope")}
				delete(ts, key)
				delete(model, key)
			},
			"expired": func(t *rapid.T) {
				now := rapid.IntRange(0, 9).Draw(t, "now")
				last := epoch
				for _, x := range ts.expired(epoch.Add(time.Duration(now) * time.Second)) {
					if at, ok := model[x.timerKey]; !ok || at > now || x.deadline.Before(last) {
						t.Fatalf("%+v at %d, after %v; set were %v", x, now, last, model)
					}
					delete(model, x.timerKey)
					last = x.deadline
				}
				for key, at := range model {
					if at <= now {
						t.Fatalf("%+v has not expired at %d", key, now)
					}
				}
			},
			"": func(t *rapid.T) {
				next, ok := ts.next()
				if ok != (len(model) > 0) || len(ts) != len(model) {
					t.Fatalf("%v, want %v", ts, model)
				}
				for key, at := range model {
					if epoch.Add(time.Duration(at) * time.Second).Before(next) {
						t.Fatalf("next is %v, but there is %+v at %d", next, key, at)
					}
				}
			},
		})
	})
}

func TestTimersAreBounded(t *testing.T) {
	ts := timers{}
	for i := range maxTimers {
		if !ts.set(timer{timerKey: timerKey{pid: 1 + i}}) {
			t.Fatalf("only %d", i)
		}
	}
	if ts.set(timer{timerKey: timerKey{pid: 1, scope: "more"}}) {
		t.Error("one too many")
	}
	if !ts.set(timer{timerKey: timerKey{pid: 1}, signal: 9}) || ts[timerKey{pid: 1}].signal != 9 {
		t.Error("one that is there cannot be changed")
	}
}

// kennel is a gang of processes 1 to 9, as a watchdog sees it. Process 6 has ended, 7 does before its timer runs out, 8 has
// become another user's, and 9 has left its worker.
type kennel struct {
	begun  time.Time
	record []string
	mu     sync.Mutex
	fifo   string
}

func (k *kennel) write(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fifo += text
}

func (k *kennel) read() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.fifo
	k.fifo = ""
	return []byte(b)
}

func (k *kennel) owner(pid int) (born uint64, localRank int, err error) {
	switch {
	case pid == 6:
		return 0, 0, os.ErrProcessDone
	case pid > 9:
		return 0, 0, errStranger
	case pid == 9:
		return 0, -1, nil
	}
	return uint64(100 + pid), pid - 1, nil
}

func (k *kennel) signal(t timer) error {
	switch t.pid {
	case 7:
		return os.ErrProcessDone
	case 8:
		return syscall.EPERM
	}
	k.record = append(k.record, fmt.Sprintf("%v: signal %d to process %d, born %d, for %s", time.Since(k.begun), t.signal, t.pid, t.born, t.scope))
	return nil
}

func (k *kennel) warn(format string, args ...any) {
	k.record = append(k.record, fmt.Sprintf("%v: ", time.Since(k.begun))+fmt.Sprintf(format, args...))
}

// set is a line that sets a timer; seconds puts in when it runs out.
func set(pid int, scope, seconds string, signal int) string {
	return fmt.Sprintf(`{"version":1,"pid":%d,"scope_id":"%s","expiration_time":{%s},"signal":%d}`+"\n", pid, scope, seconds, signal)
}

func TestWatchdog(t *testing.T) {
	const day = 24 * time.Hour
	type step struct {
		after time.Duration
		write string // {N} is N seconds after the begin
		quiet bool   // it is not told that there is something to read
	}
	release := func(pid int, scope string) string {
		return fmt.Sprintf(`{"version":1,"pid":%d,"scope_id":"%s","expiration_time":-1,"signal":0}`+"\n", pid, scope)
	}
	const killed1 = `2s: timer "a" of process 1 (local rank 0) ran out: it was sent signal 9 (SIGKILL)`
	for _, tt := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{"runs out", []step{{0, set(1, "a", "2", 9), false}},
			[]string{"2s: signal 9 to process 1, born 101, for a", killed1}},
		{"released", []step{{0, set(1, "a", "2", 9), false}, {time.Second, release(1, "a"), false}}, nil},
		{"released too late", []step{{0, set(1, "a", "2", 9), false}, {2*time.Second + 1, release(1, "a"), false}},
			[]string{"2s: signal 9 to process 1, born 101, for a", killed1}},
		{"released in time, but read late", []step{{0, set(1, "a", "2", 9), false}, {time.Second, release(1, "a"), true}}, nil},
		{"prolonged", []step{{0, set(1, "a", "2", 9), false}, {time.Second, set(1, "a", "7", 15), false}},
			[]string{"7s: signal 15 to process 1, born 101, for a", `7s: timer "a" of process 1 (local rank 0) ran out: it was sent signal 15 (SIGTERM)`}},
		{"another scope, another process", []step{{0, set(1, "a", "2", 9) + set(1, "b", "2", 9) + set(2, "a", "2", 9) + release(1, "b") + release(2, "a"), false}},
			[]string{"2s: signal 9 to process 1, born 101, for a", killed1}},
		{"in the order of time", []step{{0, set(1, "b", "3", 9) + set(2, "a", "2.5", 9), false}}, []string{
			"2.5s: signal 9 to process 2, born 102, for a", `2.5s: timer "a" of process 2 (local rank 1) ran out: it was sent signal 9 (SIGKILL)`,
			"3s: signal 9 to process 1, born 101, for b", `3s: timer "b" of process 1 (local rank 0) ran out: it was sent signal 9 (SIGKILL)`}},
		{"already over", []step{{time.Minute, set(1, "a", "2", 9), false}},
			[]string{"1m0s: signal 9 to process 1, born 101, for a", "1m0s" + killed1[2:]}},
		{"never", []step{{0, `{"version":1,"pid":1,"scope_id":"a","expiration_time":1e300,"signal":9}` + "\n", false}}, nil},
		{"no signal", []step{{0, set(1, "a", "2", 0), false}},
			[]string{"2s: signal 0 to process 1, born 101, for a", `2s: timer "a" of process 1 (local rank 0) ran out; no signal was asked for`}},
		{"it has left its worker", []step{{0, set(9, "a", "2", 9), false}},
			[]string{"2s: signal 9 to process 9, born 0, for a", `2s: timer "a" of process 9 ran out: it was sent signal 9 (SIGKILL)`}},
		{"another user's", []step{{0, set(8, "a", "2", 9), false}},
			[]string{`2s: timer "a" of process 8 (local rank 7) ran out, but it cannot be signalled: operation not permitted`}},
		{"ended before it runs out", []step{{0, set(7, "a", "2", 9), false}}, nil},
		{"ended before it is set", []step{{0, set(6, "a", "2", 9), false}}, nil},
		{"a stranger", []step{{0, set(4242, "a", "2", 9), false}},
			[]string{`0s: timer "a" of process 4242 is not set: it is neither a worker nor started by one`}},
		{"half a line, and another's", []step{{0, `{"version":1,"pid":1,"sco`, false}, {time.Second, set(1, "a", "2", 9), false}},
			[]string{"2s: signal 9 to process 1, born 101, for a", killed1}},
		{"a line in two pieces", []step{{0, set(1, "a", "2", 9)[:30], false}, {time.Second, set(1, "a", "2", 9)[30:], false}},
			[]string{"2s: signal 9 to process 1, born 101, for a", killed1}},
		{"nonsense is told, but not for ever", []step{{0, strings.Repeat("\x1b[2J\n", 100) + set(1, "a", "2", 9), false}}, []string{
			`0s: a line in the workers' timer file is no timer: "\x1b[2J"`, `0s: a line in the workers' timer file is no timer: "\x1b[2J"`,
			`0s: a line in the workers' timer file is no timer: "\x1b[2J"`, `0s: a line in the workers' timer file is no timer: "\x1b[2J"`,
			`0s: a line in the workers' timer file is no timer: "\x1b[2J"`, `0s: a line in the workers' timer file is no timer: "\x1b[2J"`,
			`0s: a line in the workers' timer file is no timer: "\x1b[2J"`,
			`0s: a line in the workers' timer file is no timer: "\x1b[2J"; more of this kind are not logged`,
			"2s: signal 9 to process 1, born 101, for a", killed1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &kennel{begun: time.Now()}
				ready, f := make(chan struct{}), newTimerFile(nil)
				go (&watchdog{gang: k, warn: k.warn, timers: timers{}}).run(ready, f)
				for _, s := range tt.steps {
					time.Sleep(time.Until(k.begun.Add(s.after)))
					synctest.Wait()
					k.write(seconds(s.write, k.begun))
					if !s.quiet {
						ready <- struct{}{}
					}
				}
				time.Sleep(day)
				close(f.quit)
				synctest.Wait()
				if !slices.Equal(k.record, tt.want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(k.record, "\n"), strings.Join(tt.want, "\n"))
				}
			})
		})
	}
}

// seconds puts times in the place of {N}.
func seconds(text string, begin time.Time) string {
	for {
		before, rest, ok := strings.Cut(text, ":{")
		if !ok {
			return text
		}
		number, after, _ := strings.Cut(rest, "}")
		n, err := time.ParseDuration(number + "s")
		if err != nil {
			panic(err)
		}
		text = fmt.Sprintf("%s:%.3f%s", before, float64(begin.Add(n).UnixMilli())/1e3, after)
	}
}

// TestTimersOfASuspendedGang: the time in which a gang is suspended does not count, neither for timers that the watchdog
// knows of nor for those that it has not read yet.
func TestTimersOfASuspendedGang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kennel{begun: time.Now()}
		ready, f := make(chan struct{}), newTimerFile(nil)
		go (&watchdog{gang: k, warn: k.warn, timers: timers{}}).run(ready, f)
		k.write(seconds(set(1, "a", "2", 9), k.begun))
		ready <- struct{}{}
		time.Sleep(time.Second)
		k.write(seconds(set(1, "b", "3", 9), k.begun)) // and nobody has told
		f.suspend()
		time.Sleep(time.Hour)
		f.resume(time.Hour)
		time.Sleep(time.Hour)
		close(f.quit)
		synctest.Wait()
		want := []string{
			"1h0m2s: signal 9 to process 1, born 101, for a", `1h0m2s: timer "a" of process 1 (local rank 0) ran out: it was sent signal 9 (SIGKILL)`,
			"1h0m3s: signal 9 to process 1, born 101, for b", `1h0m3s: timer "b" of process 1 (local rank 0) ran out: it was sent signal 9 (SIGKILL)`,
		}
		if !slices.Equal(k.record, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(k.record, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestExitAfterATimer(t *testing.T) {
	e := Exit{Code: 137, Signal: syscall.SIGKILL, Expired: &Expiry{Scope: "a\nb" + strings.Repeat("x", 4000)}}
	if want := `signal 9 (SIGKILL) after its timer "a\nb` + strings.Repeat("x", 97) + `" ran out`; e.String() != want {
		t.Errorf("%v, want %s", e, want)
	}
}
