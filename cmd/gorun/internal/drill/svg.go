package drill

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Sizes in a picture, in pixels.
const (
	panelWidth  = 600 // of one run
	labelWidth  = 92  // left of the bars, for names
	barsWidth   = panelWidth - labelWidth - 12
	rowHeight   = 18
	barHeight   = 14
	thinBar     = 6  // of agents and etcd
	headHeight  = 78 // above the bars: the title, and the names of the marks
	footHeight  = 34 // below them: the axis
	leastLabel  = 48 // a bar that is not shorter has its rank in it
	rightMargin = 8
)

// style has a color for each state, on a light background and on a dark one.
const style = `
svg { --back: #ffffff; --text: #1f2328; --weak: #6e7781; --grid: #d8dee4; background: var(--back); font: 12px sans-serif }
text { fill: var(--text) }
.weak { fill: var(--weak) }
.grid { stroke: var(--grid) }
.axis { stroke: var(--weak) }
.computing { fill: #2da44e }
.joining { fill: #218bff }
.waiting { fill: #d4a72c }
.stopping { fill: #bc4c00 }
.running { fill: #8c959f }
.suspended { fill: #a475f9 }
.cut-off { fill: #e85aad }
.inbar { fill: #ffffff; font-size: 11px }
.fault { stroke: #cf222e; stroke-width: 2 }
.mark { stroke: var(--text); stroke-dasharray: 4 3 }
.end { stroke: #cf222e; stroke-width: 2; fill: none }
@media (prefers-color-scheme: dark) {
svg { --back: #0d1117; --text: #e6edf3; --weak: #8d96a0; --grid: #30363d }
.fault, .end { stroke: #ff7b72 }
}
`

// legend says what the colors mean, in the order in which they are shown.
var legend = []State{Computing, Waiting, Joining, Stopping, Running, Suspended, CutOff}

// A picture is an SVG that is being drawn.
type picture struct{ strings.Builder }

func (p *picture) add(format string, args ...any) { _, _ = fmt.Fprintf(p, format+"\n", args...) }

// SVG draws the timelines of results: a panel for each, those of one scenario beside each other on the same axis. If a result has several
// runs, it is the one with the median time to the first correct operation.
func SVG(results []Result) []byte {
	var rows [][]panel
	for i := range results {
		r := &results[i]
		if len(r.Runs) == 0 {
			continue
		}
		next := panel{result: r, run: middle(r.Runs)}
		if n := len(rows); n > 0 && len(rows[n-1]) < 2 && rows[n-1][0].result.Scenario == r.Scenario {
			rows[n-1] = append(rows[n-1], next)
		} else {
			rows = append(rows, []panel{next})
		}
	}
	p, y, columns := new(picture), 0, 1
	for _, row := range rows {
		from, to := axis(row)
		height := 0
		for i, panel := range row {
			panel.x, panel.y, panel.from, panel.to = i*panelWidth, y, from, to
			panel.draw(p)
			height = max(height, panel.height())
		}
		y, columns = y+height, max(columns, len(row))
	}
	drawLegend(p, y)
	width, height := columns*panelWidth+rightMargin, y+rowHeight*2
	return fmt.Appendf(nil, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %[1]d %[2]d\">\n<style>%s</style>\n%s</svg>\n",
		width, height, style, p.String())
}

// middle returns the run with the median time to the first correct operation.
func middle(runs []Outcome) Outcome {
	list := slices.Clone(runs)
	slices.SortStableFunc(list, func(a, b Outcome) int { return cmp.Compare(orLongest(a.FirstCorrect), orLongest(b.FirstCorrect)) })
	return list[(len(list)-1)/2]
}

// orLongest returns a time, and the longest one for nil.
func orLongest(t *float64) float64 {
	if t == nil {
		return math.MaxFloat64
	}
	return *t
}

// axis returns the times that panels show: from a while before the fault until a while after the last mark, or, without marks, all.
func axis(row []panel) (from, to float64) {
	for _, p := range row {
		for _, m := range p.run.marks() {
			to = max(to, m.at)
		}
	}
	if to == 0 {
		for _, p := range row {
			first, last := p.run.Timeline.bounds()
			from, to = min(from, first), max(to, last)
		}
		return from, max(to, 1)
	}
	return -to / 8, to * 9 / 8
}

// drawLegend says what the colors mean.
func drawLegend(p *picture, y int) {
	x := labelWidth
	for _, s := range legend {
		p.add(`<rect x="%d" y="%d" width="12" height="12" class="%s"/><text x="%d" y="%d">%s</text>`, x, y+2, class(s), x+17, y+12, s)
		x += 40 + 7*len(s)
	}
	p.add(`<path d="%s" class="end"/><text x="%d" y="%d">its process has ended</text>`, cross(float64(x)+6, float64(y)+8), x+17, y+12)
}

func class(s State) string { return strings.ReplaceAll(string(s), " ", "-") }

// cross returns an SVG path: an x with its middle at this point.
func cross(x, y float64) string {
	return fmt.Sprintf("M%.1f %.1fl8 8m0 -8l-8 8", x-4, y-4)
}

// tickStep returns the distance of ticks of which there are about five in a length: 1, 2 or 5, times a power of ten.
func tickStep(length float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(length/5)))
	for _, n := range []float64{1, 2, 5} {
		if length/(n*power) <= 7 {
			return n * power
		}
	}
	return 10 * power
}

func text(s string) string { return html.EscapeString(s) }
