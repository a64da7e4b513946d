package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// The window, in pixels: a character of a monospaced font of size 14 is about 8.43 wide.
const (
	rows   = 24
	height = 20
	margin = 16
	bar    = 32
	wide   = columns*8.43 + 2*margin
	tall   = bar + rows*height + margin
	rest   = 6 // seconds for which the end stands
)

const style = `text{white-space:pre;font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#9aa5b1}
.t{fill:#f0f3f6;font-weight:700}.c{fill:#7ee787}.w{fill:#f2b155}.n{fill:#d5dde5}.b{fill:#8b949e;font-size:12px}
`

// draw makes an SVG: the page moves up behind the window, and a cover moves down the page.
func draw(lines []line) []byte {
	var out bytes.Buffer
	end := lines[len(lines)-1].at + rest
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img" aria-label="A terminal: one bad edit of a ConfigMap stops at one of four applications; once fixed, it reaches all">
<style>
%s#page{animation:page %.1fs infinite step-end}#cover{animation:cover %.1fs infinite step-end}
@media (prefers-reduced-motion:reduce){#page,#cover{animation:none}}
`, wide, tall, wide, tall, style, end, end)
	keyframes(&out, "page", lines, end, func(shown int) int { return -height * max(0, shown-rows) })
	keyframes(&out, "cover", lines, end, func(shown int) int { return height * min(shown, rows) })
	// Standing still, it shows the end.
	fmt.Fprintf(&out, `#page{transform:translateY(%dpx)}#cover{transform:translateY(%dpx)}
</style>
<rect width="100%%" height="100%%" rx="8" fill="#161b22" stroke="#57606a"/>
<g fill="#57606a"><circle cx="20" cy="17" r="5"/><circle cx="38" cy="17" r="5"/><circle cx="56" cy="17" r="5"/></g>
<text class="b" x="76" y="21">one bad edit, four applications: recorded from make demo</text>
<svg y="%d" height="%d" width="%.0f"><g id="page">
`, -height*max(0, len(lines)-rows), height*rows, bar, rows*height, wide)
	for i, line := range lines {
		text := strings.TrimRight(strings.TrimPrefix(line.text, "  "), " ")
		if text == "" {
			continue
		}
		fmt.Fprintf(&out, `<text class="%s" x="%d" y="%d" xml:space="preserve">`, line.kind, margin, i*height+15)
		_ = xml.EscapeText(&out, []byte(text))
		out.WriteString("</text>\n")
	}
	fmt.Fprintf(&out, `</g><rect id="cover" width="%.0f" x="1" height="%d" fill="#161b22"/></svg>
</svg>
`, wide-2, rows*height)
	return out.Bytes()
}

// keyframes writes where something stands as lines appear.
func keyframes(out *bytes.Buffer, name string, lines []line, end float64, place func(shown int) int) {
	fmt.Fprintf(out, "@keyframes %s{", name)
	was := 1
	for i := range lines {
		if i+1 < len(lines) && lines[i+1].at == lines[i].at {
			continue
		}
		if is := place(i + 1); is != was {
			at := 100 * lines[i].at / end
			if was == 1 {
				at = 0
			}
			fmt.Fprintf(out, "%.2f%%{transform:translateY(%dpx)}", at, is)
			was = is
		}
	}
	fmt.Fprintf(out, "100%%{transform:translateY(%dpx)}}\n", was)
}
