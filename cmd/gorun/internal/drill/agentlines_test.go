package drill

import (
	"slices"
	"testing"
)

// TestRead: what the drill takes from the lines of an agent.
func TestRead(t *testing.T) {
	s := &testbed{events: newEvents(), seen: newObserver(1, Restart), options: Options{Nodes: 2}}
	p := &process{name: "node1"}
	lines := []string{
		"08:14:56 [INFO]  gorun: hosting the rendezvous: at=x\n",
		"08:14:57 [WARN]  gorun: [default] Worker group FAILED. 3/3 attempts left; will restart worker group: rank 1 on vm: exit code 1; restart 1 of 3\n",
		"  error_file: <N/A>\n",
		"  error_file: /tmp/a job/attempt_0/1/error.json\n",
		"gorun: the disk is full\n",
	}
	go func() {
		for _, line := range lines {
			s.read(p, 1, []byte(line))
		}
	}()
	if err := s.takeUntil(t.Context(), func() bool { return p.failure != "" }); err != nil {
		t.Fatal(err)
	}
	want := rootCause{1, 1, "rank 1 on vm: exit code 1"}
	if got := s.seen.causes; !p.announced || p.failure != ": the disk is full" || len(got) != 1 || got[1] != want {
		t.Errorf("read is %+v, %+v", p, got)
	}
	if want := []string{"/tmp/a job/attempt_0/1/error.json"}; !slices.Equal(s.errors, want) {
		t.Errorf("the error files are %q, want %q", s.errors, want)
	}
}
