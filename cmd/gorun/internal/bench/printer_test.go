package bench

import (
	"strings"
	"testing"
)

// rows are what a job of two ranks may have measured.
func rows(c *Config) []*row {
	sum := experiment{operation: operations[0], typ: dataTypes[9], op: "sum", root: -1}
	blocks := experiment{operation: operations[3], typ: dataTypes[9], root: -1}
	wait := experiment{operation: operations[len(operations)-1], typ: noType, root: -1}
	right, bad := new(0), new(3)

	one := newRow(sum, 2, 64<<20, 16<<20, c)
	one.InPlace = newFigures(sum, 2, 64<<20, measurement{20, 7.3e-3, 7.1e-3, 8e-3}, right, c.P99)
	two := newRow(blocks, 2, 64, 8, c)
	two.OutOfPlace = newFigures(blocks, 2, 64, measurement{20, 0.128e-6, 0.1e-6, 0.2e-6}, bad, c.P99)
	two.InPlace = newFigures(blocks, 2, 64, measurement{20, 0, 0, 0}, nil, c.P99)
	three := newRow(wait, 2, 0, 0, c)
	three.OutOfPlace = newFigures(wait, 2, 0, measurement{1000, 53.4e-9, 50e-9, 1e-6}, nil, c.P99)
	return []*row{one, two, three}
}

// reported is what is printed of them.
func reported(t *testing.T, c *Config) string {
	t.Helper()
	var out strings.Builder
	r := printer{c: c, out: &out}
	r.start([]rankInfo{{Host: "node0", Pid: 4242}, {Host: "node1", Pid: 17}})
	for _, row := range rows(c) {
		r.end()
		r.begin(row.Operation)
		r.row(row)
	}
	r.end()
	if r.err != nil || r.wrong != 3 {
		t.Errorf("%d wrong, %v", r.wrong, r.err)
	}
	return out.String()
}

func TestTable(t *testing.T) {
	c := config(allReduce, allGather, barrier)
	c.Warmup, c.Iterations, c.Checks = 5, 20, 1
	want := `
# nRanks 2 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 validation: 1 dirty: false alloc: false transport: auto
#
# Using
#  Rank  0 Pid   4242 on node0
#  Rank  1 Pid     17 on node1
#
# all_reduce: every rank gets the reduction over all ranks
#                                                                out-of-place                       in-place
#       size         count        type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                                 (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
    67108864      16777216       float     sum      -1        -       -       -       -   7300.0   9.193   9.193       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 9.193
#
# all_gather: every rank gets the blocks of all ranks
#                                                                out-of-place                       in-place
#       size         count        type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                                 (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
          64             8       float    none      -1    0.128   0.500   0.250       3    0.000   0.000   0.000     N/A
# Out of bounds values : 3 FAILED
# Avg bus bandwidth    : 0.125
#
# barrier: every rank waits for all ranks
#                                                                out-of-place                       in-place
#       size         count        type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                                 (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           0             0        none    none      -1    0.053       -       -     N/A        -       -       -       -
# Out of bounds values : 0 OK
`
	if got := reported(t, &c); got != want[1:] {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

func TestTableOfPercentiles(t *testing.T) {
	c := config(allGather)
	c.P99, c.Sizes.Step = true, 8
	const want = `
#       size         count        type   redop    root     time      p50      p99   algbw   busbw  #wrong     time      p50      p99   algbw   busbw  #wrong
#        (B)    (elements)                                 (us)     (us)     (us)  (GB/s)  (GB/s)             (us)     (us)     (us)  (GB/s)  (GB/s)
          64             8       float    none      -1    0.128    0.100    0.200   0.500   0.250       3    0.000    0.000    0.000   0.000   0.000     N/A
`
	if got := reported(t, &c); !strings.Contains(got, want) || !strings.Contains(got, "step: 8(bytes) warmup iters: 0 iters: auto") {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

func TestJSON(t *testing.T) {
	c := config(allReduce, allGather, barrier)
	c.JSON, c.P99, c.Dirty = true, true, true
	want := []string{
		`{"operation":"all_reduce","ranks":2,"size":67108864,"count":16777216,"type":"float","redop":"sum","root":-1,"transport":"auto","dirty":true,"alloc":false,` +
			`"out_of_place":null,"in_place":{"iterations":20,"us":7300,"p50_us":7100,"p99_us":8000,"algbw":9.193,"busbw":9.193,"wrong":0}}`,
		`{"operation":"all_gather","ranks":2,"size":64,"count":8,"type":"float","redop":"none","root":-1,"transport":"auto","dirty":true,"alloc":false,` +
			`"out_of_place":{"iterations":20,"us":0.128,"p50_us":0.1,"p99_us":0.2,"algbw":0.5,"busbw":0.25,"wrong":3},` +
			`"in_place":{"iterations":20,"us":0,"p50_us":0,"p99_us":0,"algbw":0,"busbw":0,"wrong":null}}`,
		`{"operation":"barrier","ranks":2,"size":0,"count":0,"type":"none","redop":"none","root":-1,"transport":"auto","dirty":true,"alloc":false,` +
			`"out_of_place":{"iterations":1000,"us":0.0534,"p50_us":0.05,"p99_us":1,"algbw":0,"busbw":0,"wrong":null},"in_place":null}`,
	}
	if got := reported(t, &c); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestBrief(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.000", 0.0534: "0.053", 9.9994: "9.999", 9.9996: "10.00", 99.99: "99.99", 999.996: "1000.0", 1234.56: "1234.6", 9999.96: "10000", 69029.4: "69029",
	} {
		if got := brief(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
