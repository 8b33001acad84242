package choice

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// table is a table of two operations; rare is in no row. others are the algorithms of another place.
var (
	table = &Table{
		Algorithms{
			{"sum", LL, "a line"}, {"sum", Binomial, "a tree"}, {"sum", Ring, "a ring"},
			{"copy", Linear, "nothing"}, {"copy", Binomial, "a tree"},
		},
		Rows{
			"sum":  {{LL, upTo(100)}, {Binomial, each(1000)}, {Ring, nil}},
			"copy": {{Binomial, nil}},
		},
		Sizes{},
	}
	others = Algorithms{{"sum", Slots, "on foot"}, {"meet", Slots, "on foot"}}
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		tuning, op   string
		ranks, bytes int
		want         Algorithm
	}{
		{"", "sum", 2, 100, "ll"}, {"", "sum", 2, 101, "binomial"}, {"", "sum", 2, 2000, "binomial"}, {"", "sum", 2, 2001, "ring"},
		{"", "sum", 4, 4000, "binomial"}, {"", "copy", 2, 0, "binomial"}, {"", "meet", 2, 0, ""},
		{"sum=ring", "sum", 2, 100, "ll"}, {"sum=ring", "sum", 2, 101, "ring"},
		{"sum=ring:2K,binomial", "sum", 2, 2048, "ring"}, {"sum=ring:2K,binomial", "sum", 2, 2049, "binomial"},
		{"sum@4=ring", "sum", 2, 101, "binomial"}, {"sum@4=ring", "sum", 4, 101, "ring"},
		{"sum=binomial;sum@4=ring", "sum", 4, 101, "ring"}, {"sum=binomial;sum@4=ring", "sum", 3, 1 << 40, "binomial"},
		{"sum=slots", "sum", 2, 101, "binomial"}, // of the other table
		{"sum=ring", "copy", 2, 101, "binomial"},
		{"# all\n sum = ring:1M , binomial # of many\n\ncopy=linear", "copy", 2, 1, "linear"},
	} {
		tuning, err := Parse(c.tuning, table.Algorithms, others)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := (Chooser{Table: table, Tuning: tuning}).Choose(c.op, c.ranks, c.bytes); got != c.want {
			t.Errorf("%q: %s of %d bytes on %d ranks goes by %q, want %q", c.tuning, c.op, c.bytes, c.ranks, got, c.want)
		}
	}
}

func TestTuningThatMakesNoSense(t *testing.T) {
	for text, want := range map[string]string{
		"sum":                           "want operation=way:bytes,way",
		"sun=ring":                      `sun has no way "ring": operations are copy, meet, sum`,
		"sum=hop":                       `sum has no way "hop": want some of binomial, ring; or of slots`,
		"sum=binomial:1K,slots":         `sum has no way "slots" beside "binomial": want some of binomial, ring`,
		"sum=ll":                        "ll is taken wherever it can be",
		"sum=binomial:1K":               "the last way must have no limit",
		"sum=binomial,ring":             "binomial has no limit: it must be the last way",
		"sum=binomial:2K,ring:1":        "ring is for no more bytes than the way before it",
		"sum=binomial:1k,ring":          `"1k": want a number of bytes, as 512, 64K or 1M`,
		"sum=binomial:9999999999G,ring": `"9999999999G": want a number of bytes`,
		"sum=binomial:-1,ring":          `"-1": want a number of bytes`,
		"sum@x=ring":                    "@x: want a number of ranks",
		"sum@0=ring":                    "@0: want a number of ranks",
		"sum=":                          `sum has no way ""`,
	} {
		_, err := Parse("copy=binomial;"+text, table.Algorithms, others)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), `tuning "`+text+`": `) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A tuning is what it says it is, and what is listed is what is picked.
func TestChoicesSayWhatTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			limit := rapid.IntRange(0, 1<<20).Draw(t, "limit")
			at := rapid.SampledFrom([]string{"", "@2", "@3"}).Draw(t, "at")
			text += "sum" + at + "=" + Ways{{Ring, limit}, {Binomial, Any}}.String() + "\n"
		}
		tuning, err := Parse(text, table.Algorithms)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(tuning.String(), table.Algorithms)
		if err != nil || !reflect.DeepEqual(again, tuning) {
			t.Fatalf("%q means %v, and that %v: %v", text, tuning, again, err)
		}
		c := Chooser{Table: table, Tuning: tuning}
		op, ranks := rapid.SampledFrom([]string{"sum", "copy"}).Draw(t, "op"), rapid.IntRange(1, 5).Draw(t, "ranks")
		bytes := rapid.IntRange(0, 1<<21).Draw(t, "bytes")
		ways := c.Ways(op, ranks)
		if listed, picked := ways.Pick(bytes), c.Choose(op, ranks, bytes); listed != picked || picked == "" || c.What(op, picked) == "" {
			t.Errorf("%q: %d bytes: %q is picked from %v, where it is %q", text, bytes, picked, ways, listed)
		}
		if last := ways[len(ways)-1]; last.UpTo != Any {
			t.Errorf("the last of %v has a limit", ways)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("sum=binomial:32K,ring; copy@4=binomial # as measured")
	f.Fuzz(func(t *testing.T, text string) {
		tuning, err := Parse(text, table.Algorithms, others)
		if err != nil {
			return
		}
		if again, err := Parse(tuning.String(), table.Algorithms, others); err != nil || !reflect.DeepEqual(again, tuning) {
			t.Errorf("%q means %q, and that %v: %v", text, tuning, again, err)
		}
	})
}

// TestNoTuningTakesMoreMemoryThanThereIs: of longer vectors than that, another algorithm is chosen, as Explain says too.
func TestNoTuningTakesMoreMemoryThanThereIs(t *testing.T) {
	tuning, err := Parse("all_reduce=pairwise", Messages)
	if err != nil {
		t.Fatal(err)
	}
	c := Chooser{Table: Network, Tuning: tuning}
	if a, b := c.Choose("all_reduce", 4, 8<<20), c.Choose("all_reduce", 4, 8<<20+1); a != Pairwise || b != Bidirectional {
		t.Errorf("%s, and beyond it %s", a, b)
	}
	if got := c.Ways("all_reduce", 4).String(); got != "pairwise:8M,bidirectional" {
		t.Errorf("listed: %s", got)
	}
}
