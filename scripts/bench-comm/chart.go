package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A look is how a contender is drawn.
type look struct {
	colour string
	dashed bool
}

// looks are readable on light and dark backgrounds. Lines for TCP are dashed.
var looks = map[string]look{
	"comm": {"#2f81f7", false}, "comm alloc": {"#12a594", false}, "comm tcp": {"#2f81f7", true},
	"Open MPI": {"#e5730b", false}, "Open MPI tcp": {"#e5730b", true},
	"Open MPI han": {"#b54708", true}, "the link": {"#8a8f98", false},
	"MPICH": {"#a35bd6", false}, "MPICH tcp": {"#a35bd6", true}, "gloo": {"#8a8f98", true},
}

// The size of a panel's drawing area and of its margins, in pixels.
const (
	across                  = 4
	plotWidth, plotHeight   = 220.0, 180.0
	left, right, above      = 58.0, 24.0, 34.0
	panelWidth, panelHeight = plotWidth + left + right, plotHeight + above + 30
	header, footer          = 44.0, 12.0
)

// style follows the light or dark preference of the reader's system.
const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #57606a } .title { font-weight: 600; fill: #1f2328 } .end { text-anchor: end } .middle { text-anchor: middle }
.back { fill: #ffffff } .grid { stroke: #d0d7de; stroke-width: 1 } .line { fill: none; stroke-width: 2 } .dashed { stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) { text { fill: #9198a1 } .title { fill: #f0f6fc } .back { fill: #0d1117 } .grid { stroke: #3d444d } }
</style>
`

// chart draws time against bytes, with one panel for each operation, for the smallest number of ranks, and for dirty memory if that
// was measured.
func (r report) chart() string {
	if len(r.Figures) == 0 {
		return `<svg xmlns="http://www.w3.org/2000/svg"/>` + "\n"
	}
	ranks, state := r.Figures[0].Ranks, "hot" // the smallest number stands first
	if slices.ContainsFunc(r.Figures, func(f figure) bool { return f.State == "dirty" }) {
		state = "dirty"
	}
	width, height := across*panelWidth, header+float64((len(r.ops)+across-1)/across)*panelHeight+footer
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-label="time of collectives against bytes">`+"\n", width, height)
	b.WriteString(style)
	fmt.Fprintf(&b, `<rect class="back" width="%g" height="%g" rx="8"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text class="title" x="14" y="26">Microseconds of an operation against bytes, %s, %s memory</text>`+"\n", cmp.Or(r.where, fmt.Sprint(ranks, " ranks")), state)
	r.legend(&b, width)
	for i, op := range r.ops {
		x, y := float64(i%across)*panelWidth+left, header+float64(i/across)*panelHeight+above
		fmt.Fprintf(&b, `<text class="title" x="%g" y="%g">%s</text>`+"\n", x, y-10, op)
		drawPanel(&b, x, y, slices.DeleteFunc(slices.Clone(r.Figures), func(f figure) bool {
			return f.Op != op || f.Ranks != ranks || f.State != state && f.Bytes > 0 || looks[f.Contender] == look{}
		}))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// legend stands at the right of the title.
func (r report) legend(b *strings.Builder, width float64) {
	x := width - 14
	for _, c := range slices.Backward(r.Contenders) {
		x -= 7*float64(len(c.Name)) + 40
		fmt.Fprintf(b, `<path d="M%g 22h24" %s/><text x="%g" y="26">%s</text>`+"\n", x, looks[c.Name].attributes(), x+30, c.Name)
	}
}

// attributes returns the attributes of a line.
func (l look) attributes() string {
	class := "line"
	if l.dashed {
		class += " dashed"
	}
	return fmt.Sprintf(`class="%s" stroke="%s"`, class, l.colour)
}

// point returns the attributes of a point, which is hollow if the line is dashed.
func (l look) point() string {
	if l.dashed {
		return fmt.Sprintf(`class="back" stroke="%s" stroke-width="1.5"`, l.colour)
	}
	return fmt.Sprintf(`fill="%s"`, l.colour)
}
