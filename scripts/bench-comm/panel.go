package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A scale is a logarithmic axis: what is least stands at start, what is most length further.
type scale struct {
	least, most, start, length float64
}

func (s scale) at(v float64) float64 {
	if s.most == s.least {
		return s.start + s.length/2
	}
	return s.start + s.length*math.Log(v/s.least)/math.Log(s.most/s.least)
}

// drawPanel draws the figures of one operation: a line for each contender, or a point if there are no sizes.
func drawPanel(b *strings.Builder, left, top float64, figures []figure) {
	if len(figures) == 0 {
		fmt.Fprintf(b, `<text x="%g" y="%g">not measured</text>`+"\n", left, top+plotHeight/2)
		return
	}
	var contenders []string
	var sizes []int
	x, y := scale{start: left, length: plotWidth}, scale{least: math.Inf(1), start: top + plotHeight, length: -plotHeight}
	for _, f := range figures {
		contenders, sizes = append(contenders, f.Contender), append(sizes, f.Bytes)
		y.least, y.most = min(y.least, f.Microseconds), max(y.most, f.Microseconds)
	}
	slices.Sort(contenders)
	slices.Sort(sizes)
	contenders, sizes = slices.Compact(contenders), slices.Compact(sizes)
	x.least, x.most = float64(sizes[0]), float64(sizes[len(sizes)-1])
	y.least, y.most = math.Pow10(int(math.Floor(math.Log10(y.least)))), math.Pow10(int(math.Floor(math.Log10(y.most)))+1)

	for us := y.least; us <= y.most*1.01; us *= 10 {
		fmt.Fprintf(b, `<path class="grid" d="M%g %.1fh%g"/><text class="end" x="%g" y="%.1f">%s</text>`+"\n",
			left, y.at(us), plotWidth, left-6, y.at(us)+4, duration(us))
	}
	for i, n := range sizes {
		if n > 0 && (i == 0 || i == len(sizes)/2 || i == len(sizes)-1) {
			fmt.Fprintf(b, `<text class="middle" x="%.1f" y="%g">%s</text>`+"\n", x.at(float64(n)), top+plotHeight+18, strings.TrimSuffix(size(n), "iB"))
		}
	}
	for i, contender := range contenders {
		var points []string
		for _, f := range figures {
			if f.Contender != contender {
				continue
			}
			across := left + plotWidth*(float64(i)+0.5)/float64(len(contenders))
			if f.Bytes > 0 {
				across = x.at(float64(f.Bytes))
			}
			points = append(points, fmt.Sprintf("%.1f %.1f", across, y.at(f.Microseconds)))
		}
		l := looks[contender]
		fmt.Fprintf(b, `<path d="M%s" %s/>`+"\n", strings.Join(points, "L"), l.attributes())
		for _, p := range points {
			across, down, _ := strings.Cut(p, " ")
			fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="3" %s/>`+"\n", across, down, l.point())
		}
	}
}

// duration writes a power of ten of microseconds.
func duration(us float64) string {
	switch {
	case us >= 0.99e6:
		return fmt.Sprintf("%.0f s", us/1e6)
	case us >= 0.99e3:
		return fmt.Sprintf("%.0f ms", us/1e3)
	default:
		return fmt.Sprintf("%g µs", us)
	}
}
