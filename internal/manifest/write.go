package manifest

import (
	"bytes"
	"slices"
	"strings"
)

// tree is what is to be written: entries, below some keys.
type tree struct {
	path    []string
	entries []entry
}

// nest is a tree of entries, sorted.
func nest(path []string, entries []entry) tree {
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.key, b.key) })
	return tree{path, sorted}
}

// block writes lines.
func (t tree) block(indent, step, lineBreak string) string {
	var b strings.Builder
	for _, name := range t.path {
		b.WriteString(indent + name + ":" + lineBreak)
		indent += step
	}
	for _, one := range t.entries {
		b.WriteString(indent + one.key + `: "` + one.value + `"` + lineBreak)
	}
	return b.String()
}

// flow writes what stands between brackets, as JSON.
func (t tree) flow() string { return t.flowIn(" ") }

// flowIn is flow with a text between two entries.
func (t tree) flowIn(between string) string {
	var b strings.Builder
	for _, name := range t.path {
		b.WriteString(`"` + name + `": {`)
	}
	for i, one := range t.entries {
		if i > 0 {
			b.WriteByte(',')
			if len(t.path) == 0 {
				b.WriteString(between)
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteString(`"` + one.key + `": "` + one.value + `"`)
	}
	return b.String() + strings.Repeat("}", len(t.path))
}

// lineStart is where the line of a byte begins.
func (e *editor) lineStart(at int) int {
	return 1 + bytes.LastIndexAny(e.document.text[:at], "\n\r")
}

// lineBreak is how lines end before a byte.
func (e *editor) lineBreak(at int) string {
	for _, how := range []string{"\r\n", "\n", "\r"} {
		if bytes.HasSuffix(e.document.text[:at], []byte(how)) {
			return how
		}
	}
	if bytes.Contains(e.document.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// step is by how much more what is below the keys of a mapping is indented; where
// nothing is, as in the whole document.
func (e *editor) step(in *node) string {
	for _, of := range []*node{in, e.document.root} {
		for _, m := range of.members {
			if m.value.form != mapping || m.value.flow || len(m.value.members) == 0 {
				continue
			}
			key, below := m.key.at, m.value.members[0].key.at
			if more := (below - e.lineStart(below)) - (key - e.lineStart(key)); more > 0 {
				return strings.Repeat(" ", more)
			}
		}
	}
	return "  "
}

// bracket finds where a flow mapping opens, behind its anchor and its tag.
func (e *editor) bracket(n *node) (int, bool) {
	text := e.document.text
	for at := n.at; at < len(text); {
		switch text[at] {
		case '{':
			return at, true
		case ' ', '\t', '\r', '\n':
			at++
		case '&', '!':
			end := bytes.IndexAny(text[at:], " \t\r\n")
			if end < 0 {
				return 0, false
			}
			at += end
		default:
			return 0, false
		}
	}
	return 0, false
}

// quoted is how long the text in quotes is that another begins with, 0 when it does
// not end.
func quoted(text []byte, quote byte) int {
	for at := 1; len(text) > 0 && text[0] == quote && at < len(text); at++ {
		switch {
		case quote == '"' && text[at] == '\\':
			at++
		case text[at] != quote:
		case quote == '\'' && at+1 < len(text) && text[at+1] == quote:
			at++
		default:
			return at + 1
		}
	}
	return 0
}
