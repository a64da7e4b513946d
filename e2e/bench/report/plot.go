package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// A plot is small and plain: both axes logarithmic, as costs are to be
// compared with straight lines.
const (
	plotWidth, plotHeight = 480, 280
	plotLeft, plotBottom  = 60, 40
	plotTop, plotRight    = 30, 15
)

// plotFile names the plot of a curve: growth-configstamp-memory-by-sources.svg.
func plotFile(r *Result, c *Curve) string {
	name := strings.Map(func(letter rune) rune {
		switch {
		case letter >= 'a' && letter <= 'z', letter >= '0' && letter <= '9':
			return letter
		case letter >= 'A' && letter <= 'Z':
			return letter - 'A' + 'a'
		}
		return '-'
	}, c.Name)
	return r.Scenario + "-" + r.Product + "-" + strings.Trim(name, "-") + ".svg"
}

func (r *Report) plots() map[string]string {
	plots := map[string]string{}
	for _, result := range r.Results {
		for _, curve := range result.Curves {
			plots[plotFile(result, curve)] = curve.svg()
		}
	}
	return plots
}

// axis maps values onto pixels.
type axis struct {
	low, high  float64 // powers of ten
	from, upto float64 // pixels
}

func newAxis(values []float64, from, upto float64) axis {
	a := axis{low: math.Inf(1), high: math.Inf(-1), from: from, upto: upto}
	for _, value := range values {
		if value > 0 {
			a.low, a.high = min(a.low, math.Floor(math.Log10(value))), max(a.high, math.Ceil(math.Log10(value)))
		}
	}
	if a.low >= a.high {
		a.high = a.low + 1
	}
	return a
}

func (a axis) at(value float64) float64 {
	return a.from + (math.Log10(value)-a.low)/(a.high-a.low)*(a.upto-a.from)
}

func (c *Curve) svg() string {
	var xs, ys []float64
	for _, point := range c.Points {
		if point.X > 0 && point.Y > 0 {
			xs, ys = append(xs, point.X), append(ys, point.Y)
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="18" font-size="13">%s</text>`+"\n", plotLeft, html.EscapeString(c.Name))
	if len(xs) > 0 {
		c.draw(&out, newAxis(xs, plotLeft, plotWidth-plotRight), newAxis(ys, plotHeight-plotBottom, plotTop), xs, ys)
	}
	fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="middle">%s</text>`, (plotLeft+plotWidth)/2, plotHeight-6, html.EscapeString(c.X))
	fmt.Fprintf(&out, `<text transform="translate(13 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n</svg>\n", plotHeight/2, html.EscapeString(c.Y))
	return out.String()
}

func (c *Curve) draw(out *strings.Builder, x, y axis, xs, ys []float64) {
	for power := x.low; power <= x.high; power++ {
		at := x.at(math.Pow(10, power))
		fmt.Fprintf(out, `<path d="M%.1f %.1fV%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n",
			at, y.from, y.upto, at, y.from+14, number(math.Pow(10, power)))
	}
	for power := y.low; power <= y.high; power++ {
		at := y.at(math.Pow(10, power))
		fmt.Fprintf(out, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			x.from, at, x.upto, x.from-4, at+4, number(math.Pow(10, power)))
	}
	var line []string
	for i := range xs {
		line = append(line, fmt.Sprintf("%.1f,%.1f", x.at(xs[i]), y.at(ys[i])))
		fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3" fill="#06c"/>`, x.at(xs[i]), y.at(ys[i]))
	}
	fmt.Fprintf(out, `<polyline points="%s" fill="none" stroke="#06c" stroke-width="1.5"/>`+"\n", strings.Join(line, " "))
}
