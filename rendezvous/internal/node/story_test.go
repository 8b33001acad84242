package node

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

var update = flag.Bool("update", false, "write the stories in testdata anew")

// A simStory is a job in which nothing is drawn: each message takes a millisecond, and what happens is written down here.
type simStory struct {
	name    string
	nodes   int
	change  func(*Config)
	happens func(w *simWorld)
	// ends is called when workers of an agent have begun; nil: they succeed after ten seconds.
	ends func(a *simAgent, r *simRound)
	code int // with which the job ends

	lost      string        // what request's next transaction has no answer, though it is carried out
	slow      string        // what requests take a second to get to etcd
	slowAfter time.Duration // from then on
}

// loses reports whether the answer to a call is lost.
func (s *simStory) loses(_ *simAgent, c *simCall) bool {
	if s.lost == "" || c.of != s.lost || c.what != "commit" {
		return false
	}
	s.lost = ""
	return true
}

func (s *simStory) workersEnd(a *simAgent, r *simRound) {
	if s.ends == nil {
		a.world.after(10*time.Second, func() { a.succeed(r) })
		return
	}
	s.ends(a, r)
}

// failOnce has the first round fail at one node.
func failOnce(a *simAgent, r *simRound) {
	w := a.world
	switch {
	case r.ID > 1:
		w.after(10*time.Second, func() { a.succeed(r) })
	case a.name == "n1":
		w.after(time.Second, func() { a.fail(r, false) })
	}
}

// on has something happen to an agent.
func on(at time.Duration, name string, do func(*simAgent)) func(*simWorld) {
	return func(w *simWorld) {
		w.after(at, func() {
			for _, a := range w.agents {
				if a.name == name && !a.gone {
					do(a)
				}
			}
		})
	}
}

var stories = []*simStory{
	{name: "begin", nodes: 2},
	{name: "restart", nodes: 2, ends: failOnce},
	{name: "leader", nodes: 3, change: func(c *Config) { c.Min = 2 }, happens: on(3*time.Second, "n0", func(a *simAgent) { a.exit(false) })},
	{name: "lease", nodes: 2, change: func(c *Config) { c.Min = 1 }, happens: on(2*time.Second, "n1", func(a *simAgent) {
		a.cut = true
		a.world.after(12*time.Second, func() { a.cut = false })
	})},
	{name: "emptied", nodes: 2, code: 75, happens: emptyAt(3 * time.Second), ends: func(a *simAgent, r *simRound) {
		if a.name == "n1" {
			a.world.after(5*time.Second, func() { a.fail(r, false) })
		}
	}},
	{name: "leave", nodes: 2, code: 75, happens: on(3*time.Second, "n1", func(a *simAgent) { a.leave(nil) })},
	{name: "enrolled", nodes: 2, lost: "enrol"},
}

// play plays the story, and returns it as text.
func (s *simStory) play() (text string, err error) {
	told := *s
	w := newSimWorld(1)
	w.story, w.faulty = &told, false
	c := Config{Config: rendezvous.Config{Rules: rendezvous.Rules{
		Min: s.nodes, Max: s.nodes, MaxRestarts: 1, Lease: 6 * time.Second, LastCall: 2 * time.Second, JoinTimeout: 20 * time.Second,
	}}}
	if s.change != nil {
		s.change(&c)
	}
	w.config, w.record = c, newSimRecord(&c)
	var b strings.Builder
	w.trace = func(line string) {
		if !strings.HasSuffix(line, " renewLease") {
			b.WriteString(line + "\n")
		}
	}
	for i := range s.nodes {
		w.after(time.Duration(i)*time.Second, func() { w.add("n"+string(rune('0'+i)), i) })
	}
	if s.happens != nil {
		s.happens(w)
	}
	w.length = 70 * time.Second
	if err = w.play(); err == nil && (len(w.record.all) == 0 || w.record.all[len(w.record.all)-1].Code != s.code) {
		err = fmt.Errorf("the job has ended with %+v, want code %d", w.record.all, s.code)
	}
	return b.String(), err
}

// TestStories: what the machines of a few nodes are told (<), and what they want done (>), from a job's beginning to its end.
func TestStories(t *testing.T) {
	for _, s := range stories {
		got, err := s.play()
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		path := filepath.Join("testdata", "stories", s.name+".txt")
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if line, g, w := differ(got, string(want)); line > 0 {
			t.Errorf("%s: line %d is\n%s\nwant\n%s\n(go test ./rendezvous/internal/node -run TestStories -update writes the stories anew)", path, line, g, w)
		}
	}
}

// differ returns the first line in which two texts differ; 0: in none.
func differ(got, want string) (line int, g, w string) {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		if g, w = "", ""; i < len(a) {
			g = a[i]
		}
		if i < len(b) {
			w = b[i]
		}
		if i >= len(a) || i >= len(b) || g != w {
			return i + 1, g, w
		}
	}
	return 0, "", ""
}
