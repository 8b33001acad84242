package node

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
)

// TestClocksApart: the clocks of two nodes differ by 15 minutes, and they fail one after the other. The first failure that
// was reported counts, whichever seems to be older.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	client := startServer(t).client()
	for _, skew := range []time.Duration{15 * time.Minute, -15 * time.Minute} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, client, 2, 2)
			j.config.MaxRestarts = 0
			agents := j.agents(2)
			rounds := together(t, agents)
			first, second := failure(agents[0], rounds[0].Self, 3), failure(agents[1], rounds[1].Self, 4)
			first.At = time.Now().Add(skew)
			second.At = time.Now()
			agents[0].report(rounds[0], first)
			agents[1].report(rounds[1], second)
			for _, r := range rounds {
				if o := closed(t, over(t, r)); o.Code != 3 || o.Failure == nil || o.Failure.Node != first.Node || !o.Failure.At.Equal(first.At) {
					t.Errorf("the job ended with %+v, want the failure of %s", o, first.Node)
				}
			}
		})
	}
}

// TestNoClockIsShared: the clock of one machine means nothing to another. So no document has a time in it, but for that of
// a failure and that of the end, which people read.
func TestNoClockIsShared(t *testing.T) {
	t.Parallel()
	at, ok := reflect.TypeFor[death.Death]().FieldByName("At")
	if !ok {
		t.Fatal("a failure has no time")
	}
	seen := make(map[reflect.Type]bool)
	var walk func(reflect.Type, string)
	walk = func(typ reflect.Type, path string) {
		switch {
		case typ == at.Type:
			t.Errorf("%s is a time", path)
		case typ.Kind() == reflect.Struct && !seen[typ]:
			seen[typ] = true
			for i := range typ.NumField() {
				forPeople := typ == reflect.TypeFor[death.Death]() || typ == reflect.TypeFor[stateDoc]()
				if f := typ.Field(i); !forPeople || f.Name != at.Name {
					walk(f.Type, path+"."+f.Name)
				}
			}
		case typ.Kind() == reflect.Pointer, typ.Kind() == reflect.Slice, typ.Kind() == reflect.Map:
			walk(typ.Elem(), path+"[]")
		}
	}
	for _, doc := range []any{configDoc{}, leaderDoc{}, currentDoc{}, stateDoc{}, statusDoc{}, nodeDoc{}, roundDoc{}, reportDoc{}} {
		walk(reflect.TypeOf(doc), fmt.Sprintf("%T", doc))
	}
	if !seen[reflect.TypeFor[death.Death]()] {
		t.Error("failures have not been looked at")
	}
}
