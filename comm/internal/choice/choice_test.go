package choice

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// lines is a table of three operations, others is one of another place.
var (
	lines = Table{
		{Op: "sum", Way: "tag", UpTo: func(int) int { return 100 }, Fixed: true, What: "a line"},
		{Op: "sum", Way: "tree", UpTo: func(ranks int) int { return 1000 * ranks }, What: "a tree"},
		{Op: "sum", Way: "ring", What: "a ring"},
		{Op: "copy", Way: "rare", UpTo: func(int) int { return Never }, What: "nothing"},
		{Op: "copy", Way: "tree", What: "a tree"},
	}
	others = Table{{Op: "sum", Way: "walk", What: "on foot"}, {Op: "meet", Way: "walk", What: "on foot"}}
)

func TestPick(t *testing.T) {
	for _, c := range []struct {
		tuning, op   string
		ranks, bytes int
		want         string
	}{
		{"", "sum", 2, 100, "tag"}, {"", "sum", 2, 101, "tree"}, {"", "sum", 2, 2000, "tree"}, {"", "sum", 2, 2001, "ring"},
		{"", "sum", 4, 4000, "tree"}, {"", "copy", 2, 0, "tree"}, {"", "meet", 2, 0, ""},
		{"sum=ring", "sum", 2, 100, "tag"}, {"sum=ring", "sum", 2, 101, "ring"},
		{"sum=ring:2K,tree", "sum", 2, 2048, "ring"}, {"sum=ring:2K,tree", "sum", 2, 2049, "tree"},
		{"sum@4=ring", "sum", 2, 101, "tree"}, {"sum@4=ring", "sum", 4, 101, "ring"},
		{"sum=tree;sum@4=ring", "sum", 4, 101, "ring"}, {"sum=tree;sum@4=ring", "sum", 3, 1 << 40, "tree"},
		{"sum=walk", "sum", 2, 101, "tree"}, // of the other table
		{"sum=ring", "copy", 2, 101, "tree"},
		{"# all\n sum = ring:1M , tree # of many\n\ncopy=rare", "copy", 2, 1, "rare"},
	} {
		tuning, err := Parse(c.tuning, lines, others)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := (Chooser{Table: lines, Tuning: tuning}).Pick(c.op, c.ranks, c.bytes); got != c.want {
			t.Errorf("%q: %s of %d bytes on %d ranks goes by %q, want %q", c.tuning, c.op, c.bytes, c.ranks, got, c.want)
		}
	}
}

func TestTuningThatMakesNoSense(t *testing.T) {
	for text, want := range map[string]string{
		"sum":                       "want operation=way:bytes,way",
		"sun=ring":                  `sun has no way "ring": operations are copy, meet, sum`,
		"sum=hop":                   `sum has no way "hop": want some of tree, ring; or of walk`,
		"sum=tree:1K,walk":          `sum has no way "walk" beside "tree": want some of tree, ring`,
		"sum=tag":                   "tag is taken wherever it can be",
		"sum=tree:1K":               "the last way must have no limit",
		"sum=tree,ring":             "tree has no limit: it must be the last way",
		"sum=tree:2K,ring:1":        "ring is for no more bytes than the way before it",
		"sum=tree:1k,ring":          `"1k": want a number of bytes, as 512, 64K or 1M`,
		"sum=tree:9999999999G,ring": `"9999999999G": want a number of bytes`,
		"sum=tree:-1,ring":          `"-1": want a number of bytes`,
		"sum@x=ring":                "@x: want a number of ranks",
		"sum@0=ring":                "@0: want a number of ranks",
		"sum=":                      `sum has no way ""`,
	} {
		_, err := Parse("copy=tree;"+text, lines, others)
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
			text += "sum" + at + "=" + Choice{{"ring", limit}, {"tree", Any}}.String() + "\n"
		}
		tuning, err := Parse(text, lines)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(tuning.String(), lines)
		if err != nil || !reflect.DeepEqual(again, tuning) {
			t.Fatalf("%q means %v, and that %v: %v", text, tuning, again, err)
		}
		c := Chooser{Table: lines, Tuning: tuning}
		op, ranks := rapid.SampledFrom([]string{"sum", "copy"}).Draw(t, "op"), rapid.IntRange(1, 5).Draw(t, "ranks")
		bytes := rapid.IntRange(0, 1<<21).Draw(t, "bytes")
		ways := c.Choice(op, ranks)
		if listed, picked := ways.Pick(bytes), c.Pick(op, ranks, bytes); listed != picked || picked == "" || c.What(op, picked) == "" {
			t.Errorf("%q: %d bytes: %q is picked from %v, where it is %q", text, bytes, picked, ways, listed)
		}
		if last := ways[len(ways)-1]; last.UpTo != Any {
			t.Errorf("the last of %v has a limit", ways)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("sum=tree:32K,ring; copy@4=tree # as measured")
	f.Fuzz(func(t *testing.T, text string) {
		tuning, err := Parse(text, lines, others)
		if err != nil {
			return
		}
		if again, err := Parse(tuning.String(), lines, others); err != nil || !reflect.DeepEqual(again, tuning) {
			t.Errorf("%q means %q, and that %v: %v", text, tuning, again, err)
		}
	})
}
