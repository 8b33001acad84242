package elastic

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/checkpoint"
)

func TestNewStateRefuses(t *testing.T) {
	for want, items := range map[string][]Item{
		"item 2 of 2 has no name":                    {Value("a", new(int)), Value("", new(int))},
		`two items have the name "a"`:                {Value("a", new(int)), Slice("b", []int{}), Slice("a", []int{1})},
		`the pointer of "a" (int) is nil`:            {Value[int]("a", nil)},
		"item 1 of 1 has no name":                    {{}},
		`the pointer of "a" (*func) is nil`:          {Value[*func()]("a", nil)},
		`the pointer of "m" (map[string]int) is nil`: {Value[map[string]int]("m", nil)},
	} {
		s, err := NewState(items...)
		wantArgument(t, err, "comm: elastic.NewState: "+want)
		if s != nil {
			t.Errorf("%s: there is a State", want)
		}
	}
}

// wantArgument checks that err is an ArgumentError that reads like this, with which a program ends for good.
func wantArgument(t *testing.T, err error, want string) {
	t.Helper()
	var argument *comm.ArgumentError
	if !errors.As(err, &argument) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if code := comm.ExitCode(err); code != 2 {
		t.Errorf("exit code %d of %v", code, err)
	}
}

type settings struct {
	Rate   float64
	Labels map[string][]int
	Next   *settings
	When   time.Time
	Any    any
}

// TestCommitAndRestore: what is committed comes back, whatever it is, and nothing of it is shared with the variables.
func TestCommitAndRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			n      = rapid.Int().Draw(t, "n")
			deep   = settings{Rate: rapid.Float64().Draw(t, "rate"), Labels: map[string][]int{rapid.String().Draw(t, "label"): {n}}, Next: &settings{Any: "x"}}
			short  = rapid.SliceOfN(rapid.Int16(), 0, 20).Draw(t, "short")
			long   = make([]complex128, longSlice/16+rapid.IntRange(-1, 2).Draw(t, "more"))
			half   = []comm.Float16{1, 2, 3}
			list   []string
			s, err = NewState(Value("n", &n), Value("deep", &deep), Slice("short", short), Slice("long", long), Slice("half", half), Value("list", &list))
		)
		if err != nil {
			t.Fatal(err)
		}
		wantN, wantDeep, wantLabels, wantShort := n, deep, fmt.Sprint(deep.Labels), fmt.Sprint(short)
		long[0], long[len(long)-1] = 1i, complex(math.Inf(1), math.NaN())
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			n, list = -n-1, []string{"new"}
			for _, l := range deep.Labels {
				l[0]++
			}
			deep.Labels["another"], deep.Next.Any = nil, 5
			for i := range short {
				short[i]++
			}
			clear(long)
			half[1] = 7
			if err := s.Restore(); err != nil {
				t.Fatal(err)
			}
			if n != wantN || deep.Rate != wantDeep.Rate || fmt.Sprint(deep.Labels) != wantLabels || deep.Next.Any != "x" || fmt.Sprint(short) != wantShort ||
				long[0] != 1i || !math.IsNaN(imag(long[len(long)-1])) || half[1] != 2 || list != nil || s.Commits() != 1 {
				t.Fatalf("commit %d is %v %v %v %v %v %v", s.Commits(), n, deep, short, long[0], half, list)
			}
		}
	})
}

// TestCommitFails: if a Commit fails, the last commit stays.
func TestCommitFails(t *testing.T) {
	for name, c := range map[string]struct {
		bad  any
		want string
	}{
		"function":  {func() {}, "cannot be encoded"},
		"hidden":    {struct{ x int }{1}, "cannot be encoded"},
		"too large": {make([]byte, maxValue), "takes 67108869 bytes: the limit is 67108864; use a Slice"},
	} {
		t.Run(name, func(t *testing.T) {
			var value any = "good"
			long := make([]int, longSlice)
			long[5] = 1
			s, err := NewState(Value("value", &value), Slice("long", long), Value("z", new(int)))
			if err == nil {
				err = s.Commit()
			}
			if err != nil {
				t.Fatal(err)
			}
			value, long[5] = c.bad, 2
			var argument *comm.ArgumentError
			prefix := `comm: elastic.Commit: "value" (interface) `
			if err := s.Commit(); !errors.As(err, &argument) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), prefix) {
				t.Errorf("the commit: %v", err)
			}
			if err := s.Restore(); err != nil || value != "good" || long[5] != 1 || s.Commits() != 1 {
				t.Errorf("restored %v %v, commit %d, %v", value, long[5], s.Commits(), err)
			}
		})
	}
}

func TestRestoreNeedsACommit(t *testing.T) {
	s, err := NewState(Value("n", new(int)))
	if err != nil {
		t.Fatal(err)
	}
	wantArgument(t, s.Restore(), "comm: elastic.Restore: there is no commit")
}

// TestStateIsForSeveralGoroutines is for the race detector.
func TestStateIsForSeveralGoroutines(t *testing.T) {
	n, long := 7, make([]float32, longSlice)
	s, err := NewState(Value("n", &n), Slice("long", long))
	if err == nil {
		err = s.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				if err := errors.Join(s.Commit(), s.Restore()); err != nil || s.Commits() == 0 {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if s.Commits() != 81 || n != 7 {
		t.Errorf("commit %d of %d", s.Commits(), n)
	}
}

// What another rank sends as a value is anything.
func FuzzDecode(f *testing.F) {
	item := Value("settings", new(settings))
	e, err := item.entry()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(e.Tree)
	f.Add(e.Tree[:len(e.Tree)-1])
	f.Add([]byte{})
	f.Add([]byte{0xa1, 0x65, 'v', 'a', 'l', 'u', 'e', 0xf6})
	f.Fuzz(func(t *testing.T, tree []byte) {
		value, err := item.decode(checkpoint.Entry{Tree: tree})
		if value.IsValid() == (err != nil) {
			t.Fatalf("a value: %v, error %v", value.IsValid(), err)
		}
	})
}

func TestSignature(t *testing.T) {
	type tree struct {
		Kids []*tree
		Name string `cbor:"n"`
	}
	type celsius float64
	for want, typ := range map[string]reflect.Type{
		"int":                     reflect.TypeFor[int](),
		"[]string":                reflect.TypeFor[[]string](),
		"map[string][3]*float64":  reflect.TypeFor[map[string][3]*float64](),
		"elastic.celsius float64": reflect.TypeFor[celsius](),
		"time.Time":               reflect.TypeFor[time.Time](),
		"interface":               reflect.TypeFor[any](),
		"struct { A int; }":       reflect.TypeFor[struct{ A int }](),
		`elastic.tree struct { Kids []*elastic.tree; Name string "cbor:\"n\""; }`: reflect.TypeFor[tree](),
	} {
		if got := signature(typ); got != want {
			t.Errorf("signature %s, want %s", got, want)
		}
	}
}
