package drill

import (
	"fmt"
	"math"
)

// A panel shows one run.
type panel struct {
	result   *Result
	run      Outcome
	x, y     int     // its corner
	from, to float64 // the times that it shows, in ms
}

func (p *panel) height() int {
	return headHeight + rowHeight*len(p.run.Timeline.Tracks) + footHeight
}

// at returns where a time is.
func (p *panel) at(ms float64) float64 {
	ms = min(max(ms, p.from), p.to)
	return float64(p.x+labelWidth) + (ms-p.from)/(p.to-p.from)*float64(barsWidth)
}

func (p *panel) draw(out *picture) {
	top := p.y + headHeight
	bottom := top + rowHeight*len(p.run.Timeline.Tracks)
	p.drawAxis(out, top, bottom)
	for i, t := range p.run.Timeline.Tracks {
		p.drawTrack(out, t, top+i*rowHeight)
	}
	out.add(`<text x="%d" y="%d" font-weight="bold">%s, %s</text><text x="%d" y="%d" text-anchor="end" class="weak">%s</text>`,
		p.x+8, p.y+16, text(p.result.Scenario), text(string(p.result.Policy)), p.x+labelWidth+barsWidth, p.y+16, text(p.run.Fault))
	if p.run.Fault == "" {
		return
	}
	out.add(`<line x1="%.1f" y1="%d" x2="%[1]f" y2="%[3]d" class="fault"/>`, p.at(0), p.y+24, bottom)
	for i, m := range p.run.marks() {
		x, y := p.at(m.at), p.y+34+i*16
		anchor, shift := "start", 4.0
		if x > float64(p.x)+panelWidth*0.7 {
			anchor, shift = "end", -4.0
		}
		out.add(`<line x1="%.1f" y1="%d" x2="%[1]f" y2="%[3]d" class="mark"/><text x="%.1f" y="%d" text-anchor="%s">%s: %.0f ms</text>`,
			x, y-10, bottom, x+shift, y, anchor, m.name, m.at)
	}
}

func (p *panel) drawAxis(out *picture, top, bottom int) {
	step := tickStep(p.to - p.from)
	for ms := math.Ceil(p.from/step) * step; ms <= p.to; ms += step {
		x := p.at(ms)
		out.add(`<line x1="%.1f" y1="%d" x2="%[1]f" y2="%[3]d" class="grid"/><text x="%.1[1]f" y="%[4]d" text-anchor="middle" class="weak">%.0f</text>`,
			x, top, bottom+4, bottom+17, ms+0)
	}
	out.add(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%[2]d" class="axis"/><text x="%[4]d" y="%[5]d" class="weak">ms</text>`,
		p.at(p.from), bottom+4, p.at(p.to), p.x+labelWidth-24, bottom+17)
}

// drawTrack draws what one agent, one place for a worker, or one member of etcd did.
func (p *panel) drawTrack(out *picture, t Track, y int) {
	height, name := barHeight, t.label()
	_, last := p.run.Timeline.bounds()
	if t.Local == nil {
		height = thinBar
	}
	out.add(`<text x="%d" y="%d" text-anchor="end">%s</text>`, p.x+labelWidth-6, y+13, text(name))
	for i, s := range t.Spans {
		if s.To > p.from && s.From < p.to {
			p.drawSpan(out, s, y+(rowHeight-height)/2, height)
		}
		isLast := i == len(t.Spans)-1
		ended := isLast && s.To < last || !isLast && t.Spans[i+1].Pid != s.Pid
		if ended && s.To >= p.from && s.To < p.to {
			out.add(`<path d="%s" class="end"/>`, cross(p.at(s.To), float64(y)+rowHeight/2))
		}
	}
}

func (p *panel) drawSpan(out *picture, s Span, y, height int) {
	from, to := p.at(s.From), p.at(s.To)
	about, rank := "", ""
	if s.Rank != nil {
		rank = fmt.Sprintf("rank %d", *s.Rank)
		about = fmt.Sprintf("%s in round %d, ", rank, s.Round)
	}
	out.add(`<rect x="%.1f" y="%d" width="%.1f" height="%d" class="%s"><title>%spid %d: %s from %.1f to %.1f ms</title></rect>`,
		from, y, max(to-from, 0.5), height, class(s.State), about, s.Pid, s.State, s.From, s.To)
	if rank != "" && to-from >= leastLabel {
		out.add(`<text x="%.1f" y="%d" class="inbar">%s</text>`, from+5, y+11, rank)
	}
}

// label names the track for people.
func (t Track) label() string {
	switch {
	case t.Node == nil:
		return t.Name
	case t.Local == nil:
		return fmt.Sprintf("node %d: agent", *t.Node)
	default:
		return fmt.Sprintf("worker %d", *t.Local)
	}
}
