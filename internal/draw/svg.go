package draw

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/configstamp/configstamp/internal/answer"
)

// Sizes in pixels.
const (
	rowHeight      = 26.0
	boxHeight      = 20.0
	letter         = 7.3 // of the font, 12 px wide monospace
	inBox          = 8.0 // between a box and its text
	margin         = 16.0
	between        = 160.0 // sources and workloads
	betweenColumns = 48.0
	leastWidth     = 640.0 // the legend has to fit
	longest        = 48    // letters of a name; the whole name is its title
	legendLine     = 18.0
)

// SVG draws a graph: sources on the left, the workloads that use them on the right. What
// hangs together stands together, the most urgent first.
func SVG(g *answer.Graph) string {
	p := pictureOf(g)
	blocks, columns, rows := p.layOut()
	left, right := p.label()
	s := &svg{left: left, right: right, top: margin + legendLine*float64(len(p.legend(g))+1)}
	width := max(s.x(columns)-betweenColumns+margin*2, leastWidth)
	height := s.top + rows*rowHeight + margin
	s.write(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="12">`,
		pixels(width), pixels(height), pixels(width), pixels(height))
	s.write(`<title>%s</title>`, escape(summary(g)))
	s.write(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	s.legend(p.legend(g))
	for _, b := range blocks {
		y := s.y(b.top) - boxHeight/2
		s.write(`<rect x="%s" y="%s" width="%s" height="%s" rx="6" fill="none" stroke="#d1d5db"/>`, pixels(margin), pixels(y), pixels(width-margin*2), pixels(b.rows*rowHeight))
		s.write(`<text x="%s" y="%s" font-weight="bold" fill="#374151">%s</text>`, pixels(s.x(0)), pixels(y+18), escape("namespace "+b.namespace))
	}
	for _, urgent := range []bool{false, true} { // what matters lies above the rest
		for _, l := range p.links {
			if (l.state != answer.Done) == urgent {
				s.link(l)
			}
		}
	}
	for _, n := range p.sources {
		if len(n.links) > 0 {
			s.box(n, s.x(n.column), left, 10)
		}
	}
	for _, n := range p.workloads {
		if len(n.links) > 0 {
			s.box(n, s.x(n.column)+left+between, right, 3)
		}
	}
	s.write(`</svg>`)
	return s.text.String()
}

// summary says in one line what a picture shows.
func summary(g *answer.Graph) string {
	text := fmt.Sprintf("%s, %s", count(len(g.Sources), "source"), count(len(g.Workloads), "workload"))
	if g.Without > 0 {
		text += fmt.Sprintf(" (and %d that use none)", g.Without)
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// label shortens names, and returns how wide the boxes of each side are.
func (p *picture) label() (sources, workloads float64) {
	wide := func(nodes []*node) float64 {
		most := 0
		for _, n := range nodes {
			n.label = shorten(n.name)
			length := utf8.RuneCountInString(n.label)
			if n.state != answer.Done {
				length += 2 + len(n.state)
			}
			most = max(most, length)
		}
		return float64(most)*letter + inBox*2
	}
	return wide(p.sources), wide(p.workloads)
}

// shorten keeps both ends of a name: workloads often differ at the end alone.
func shorten(name string) string {
	letters := []rune(name)
	if len(letters) <= longest {
		return name
	}
	const tail = longest / 3
	return string(letters[:longest-tail-1]) + "…" + string(letters[len(letters)-tail:])
}

// legend is what the states in a picture mean.
func (p *picture) legend(g *answer.Graph) []answer.State {
	shown := append([]answer.State{}, p.states...)
	for _, use := range g.Uses {
		if !use.Counts {
			return append(shown, notCounted)
		}
	}
	return shown
}

// notCounted stands in the legend for a use that does not count.
const notCounted answer.State = "not counted"

// svg is a picture that is being written.
type svg struct {
	text             strings.Builder
	left, right, top float64 // how wide boxes are, and where the first row is
}

func (s *svg) write(format string, args ...any) {
	fmt.Fprintf(&s.text, format+"\n", args...)
}

// x is where a column begins.
func (s *svg) x(column int) float64 {
	return margin*2 + float64(column)*(s.left+between+s.right+betweenColumns)
}

// y is the middle of a row.
func (s *svg) y(row float64) float64 { return s.top + row*rowHeight + rowHeight/2 }

func (s *svg) legend(states []answer.State) {
	y := margin + 4
	s.write(`<text x="%s" y="%s" fill="#374151">ConfigMaps and Secrets on the left, the workloads that use them on the right</text>`, pixels(margin), pixels(y))
	for _, state := range states {
		y += legendLine
		if state == notCounted {
			s.write(`<path d="M%s %sh20" stroke="#9ca3af" stroke-dasharray="2 3" fill="none"/>`, pixels(margin), pixels(y-4))
			s.write(`<text x="%s" y="%s" fill="#374151">used, but a change restarts nothing</text>`, pixels(margin+28), pixels(y))
			continue
		}
		fill, line := colours(state)
		s.write(`<rect x="%s" y="%s" width="20" height="12" rx="3" fill="%s" stroke="%s"%s/>`, pixels(margin), pixels(y-10), fill, line, dashes(state))
		s.write(`<text x="%s" y="%s" fill="#374151">%s</text>`, pixels(margin+28), pixels(y), escape(meaning(state)))
	}
}

// dashes makes the line of a box a broken one where nothing is known of it, or it is not
// there.
func dashes(state answer.State) string {
	if state == answer.Unknown || state == missing {
		return ` stroke-dasharray="4 2"`
	}
	return ""
}

func (s *svg) box(n *node, x, width, round float64) {
	fill, line := colours(n.state)
	y := s.y(n.row)
	s.write(`<g><title>%s</title><rect x="%s" y="%s" width="%s" height="%s" rx="%s" fill="%s" stroke="%s"%s/>`,
		escape(n.title), pixels(x), pixels(y-boxHeight/2), pixels(width), pixels(boxHeight), pixels(round), fill, line, dashes(n.state))
	s.write(`<text x="%s" y="%s" fill="#111827">%s</text>`, pixels(x+inBox), pixels(y+4), escape(n.label))
	if n.state != answer.Done {
		s.write(`<text x="%s" y="%s" fill="%s" text-anchor="end" font-weight="bold">%s</text>`, pixels(x+width-inBox), pixels(y+4), line, escape(string(n.state)))
	}
	s.write(`</g>`)
}

func (s *svg) link(l *link) {
	_, line := colours(l.state)
	width, dash := "1", ""
	switch {
	case !l.counts:
		line, dash = "#9ca3af", ` stroke-dasharray="2 3"`
	case l.state == answer.Done:
		line = "#9aa3af"
	default:
		width = "2"
	}
	from := s.x(l.source.column) + s.left
	to := from + between
	y1, y2, bend := s.y(l.source.row), s.y(l.workload.row), (to-from)/2
	s.write(`<path d="M%s %sC%s %s %s %s %s %s" fill="none" stroke="%s" stroke-width="%s"%s><title>%s</title></path>`,
		pixels(from), pixels(y1), pixels(from+bend), pixels(y1), pixels(to-bend), pixels(y2), pixels(to), pixels(y2), line, width, dash, escape(l.title))
}

// pixels writes a length in short.
func pixels(length float64) string {
	return strconv.FormatFloat(float64(int(length*10+0.5))/10, 'f', -1, 64)
}

func number(i int) string { return strconv.Itoa(i) }

// escape makes text of a name; the API server lets nothing else into one, but a webhook's
// words may hold anything.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
}
