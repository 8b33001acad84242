package bench

import (
	"slices"
	"strings"
	"testing"
)

// config is a Config that makes sense.
func config(operations ...string) Config {
	return Config{Operations: operations, Sizes: Sizes{Min: 8, Max: 64, Factor: 2}, Type: "float", Op: "sum", Transport: "auto"}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		sizes Sizes
		unit  int64
		want  []int64
	}{
		{Sizes{Min: 8, Max: 64, Factor: 2}, 4, []int64{8, 16, 32, 64}},
		{Sizes{Min: 8, Max: 63, Factor: 2}, 4, []int64{8, 16, 32}},
		{Sizes{Min: 1, Max: 100, Factor: 10}, 1, []int64{1, 10, 100}},
		{Sizes{Min: 5, Max: 20, Step: 5, Factor: 2}, 1, []int64{5, 10, 15, 20}},
		{Sizes{Min: 8, Max: 64, Factor: 2}, 12, []int64{12, 24, 60}}, // 3 ranks
		{Sizes{Min: 8, Max: 8, Factor: 2}, 256, []int64{256}},
		{Sizes{Min: maxSize, Max: maxSize, Factor: MaxFactor}, 1, []int64{maxSize}},
	} {
		got := slices.Collect(c.sizes.of(c.unit))
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v in units of %d: %d, want %d", c.sizes, c.unit, got, c.want)
		}
		if largest := c.sizes.largest(c.unit); largest < slices.Max(got) {
			t.Errorf("%+v in units of %d: %d is called the largest of %d", c.sizes, c.unit, largest, got)
		}
	}
	for n := range (Sizes{Min: 1, Max: 8, Step: 1}).of(1) {
		if n == 4 {
			break
		}
	}
}

func TestBusBandwidth(t *testing.T) {
	want := map[string][3]float64{ // of 1, 2 and 4 ranks
		allReduce: {0, 1, 1.5}, reduce: {1, 1, 1}, broadcast: {1, 1, 1}, allGather: {0, 0.5, 0.75}, reduceScatter: {0, 0.5, 0.75},
		allToAll: {0, 0.5, 0.75}, gather: {0, 0.5, 0.75}, scatter: {0, 0.5, 0.75}, sendRecv: {1, 1, 1}, pingPong: {1, 1, 1},
	}
	for _, o := range operations {
		factors, ok := want[o.name]
		if ok != o.moves() {
			t.Errorf("%s moves something: %t", o.name, o.moves())
			continue
		}
		for i, ranks := range []float64{1, 2, 4} {
			if ok && o.bus(ranks) != factors[i] {
				t.Errorf("%s of %v ranks: %v, want %v", o.name, ranks, o.bus(ranks), factors[i])
			}
		}
	}
}

func TestExperiments(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
		ranks  int
		want   string
	}{
		{name: "one", ranks: 2, want: "all_reduce float sum -1"},
		{name: "types", change: func(c *Config) { c.Type, c.Op = All, "min" }, ranks: 2, want: "all_reduce int8 min -1; all_reduce uint8 min -1; " +
			"all_reduce int16 min -1; all_reduce uint16 min -1; all_reduce int32 min -1; all_reduce uint32 min -1; all_reduce int64 min -1; all_reduce uint64 min -1; " +
			"all_reduce half min -1; all_reduce float min -1; all_reduce double min -1; all_reduce bfloat16 min -1"},
		{name: "ops", change: func(c *Config) { c.Op = All }, ranks: 2,
			want: "all_reduce float sum -1; all_reduce float prod -1; all_reduce float min -1; all_reduce float max -1; all_reduce float avg -1"},
		{name: "unordered", change: func(c *Config) { c.Type, c.Op = "complex64", All }, ranks: 2,
			want: "all_reduce complex64 sum -1; all_reduce complex64 prod -1; all_reduce complex64 avg -1"},
		{name: "roots", change: func(c *Config) { c.Operations, c.Root = []string{broadcast, barrier}, AllRoots }, ranks: 3,
			want: "broadcast float  0; broadcast float  1; broadcast float  2; barrier none  -1"},
		{name: "pair", change: func(c *Config) { c.Operations = []string{pingPong, sendRecv} }, ranks: 1, want: "sendrecv float  -1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := config(allReduce)
			if tt.change != nil {
				tt.change(&c)
			}
			if err := c.Check(tt.ranks); err != nil {
				t.Error(err)
			}
			var got []string
			for _, e := range c.experiments(tt.ranks) {
				got = append(got, strings.Join([]string{e.name, e.typ.name, e.op, rootText(e.root)}, " "))
			}
			if text := strings.Join(got, "; "); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
}

func rootText(root int) string {
	if root < 0 {
		return "-1"
	}
	return string(rune('0' + root))
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		ranks  int
		want   string // empty: it is good
	}{
		{func(c *Config) { c.Operations = Operations() }, 1, ""},
		{func(c *Config) { c.Operations, c.Root = []string{reduce}, 2 }, 3, ""},
		{func(c *Config) { c.Operations, c.Root = []string{reduce}, 2 }, 0, ""}, // nobody knows
		{func(c *Config) { c.Operations, c.Root = []string{reduce}, 2 }, 2, "root 2: there are only 2 ranks"},
		{func(c *Config) { c.Root = 2 }, 2, ""}, // there is none
		{func(c *Config) { c.Sizes.Min = 65 }, 2, "the smallest size, 65, is larger than the largest, 64"},
		{func(c *Config) { c.Sizes.Max = maxSize + 1 }, 2, "size 1099511627777: want at most 1099511627776"},
		{func(c *Config) { c.Type, c.Op = "complex128", "max" }, 2, "max has no meaning for complex128"},
		{func(c *Config) { c.Operations, c.Type, c.Op = Operations(), "complex64", "min" }, 2, "min has no meaning for complex64"},
		{func(c *Config) { c.Operations, c.Type, c.Op = []string{barrier}, "complex64", "min" }, 2, ""},
		{func(c *Config) { c.Operations = []string{pingPong} }, 1, "pingpong needs 2 ranks"},
		{func(c *Config) { c.Operations = []string{pingPong} }, 0, ""},
		{func(c *Config) { c.Tune, c.JSON = true, true }, 0, "--tune and --explain do not print JSON: leave out --json"},
		{func(c *Config) { c.Tune, c.Explain = true, true }, 0, "--tune and --explain print different things: leave out one of them"},
	} {
		config := config(allReduce)
		c.change(&config)
		got := ""
		if err := config.Check(c.ranks); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v, %d ranks: %q, want %q", config, c.ranks, got, c.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, c := range []struct {
		sorted   []float64
		p50, p99 float64
	}{{[]float64{7}, 7, 7}, {[]float64{1, 2}, 1, 2}, {[]float64{1, 2, 3}, 2, 3}, {hundred, 50, 99}} {
		if p50, p99 := percentile(c.sorted, 50), percentile(c.sorted, 99); p50 != c.p50 || p99 != c.p99 {
			t.Errorf("%v: %v and %v, want %v and %v", c.sorted, p50, p99, c.p50, c.p99)
		}
	}
}
