package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// narrow is how many columns a line has at most, unless it is wide.
const narrow = 80

// table prints rows under headings, each column as wide as it needs. The last column is
// broken into lines that fit, unless columns is 0.
type table struct {
	columns int
	indent  string
	rows    [][]string
	colour  func(column int, text string) string
	notes   map[int]string // paragraphs behind rows, by their number
}

func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	t.rows = append(t.rows, cells)
}

// print writes the table with its first row as headings.
func (t *table) print(to io.Writer) {
	widths := make([]int, 0, 8)
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	before := len(t.indent)
	for _, width := range widths[:max(len(widths)-1, 0)] {
		before += width + 2
	}
	for n, row := range t.rows {
		last := wrap(row[len(row)-1], t.room(before))
		head := t.indent
		for i, cell := range row[:len(row)-1] {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
			head += t.coloured(n, i, cell) + padding
		}
		for i, line := range last {
			if i > 0 {
				head = strings.Repeat(" ", before)
			}
			fmt.Fprintln(to, strings.TrimRight(head+t.coloured(n, len(row)-1, line), " "))
		}
		if note := t.notes[n]; note != "" {
			paragraph(to, t.indent+"  ", note)
		}
	}
}

// room is how many columns the last one has; 0: any number.
func (t *table) room(before int) int {
	if t.columns == 0 {
		return 0
	}
	return max(t.columns-before, 24)
}

func (t *table) coloured(row, column int, text string) string {
	if t.colour == nil || row == 0 || text == "" {
		return text
	}
	return t.colour(column, text)
}

// wrap breaks a text into lines of a width; 0: one line. A word that is longer stays whole.
func wrap(text string, width int) []string {
	if width == 0 {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// paragraph prints a text behind an indent, broken at 80 columns; further lines stand
// deeper. A command in it, from "kubectl" on, stands on a line of its own, whole, so that
// it can be copied.
func paragraph(to io.Writer, indent, text string) {
	words, command, found := strings.Cut(printable(text), "kubectl ")
	if words = strings.TrimSpace(words); words != "" {
		for i, line := range wrap(words, narrow-len(indent)-2) {
			if i > 0 {
				line = "  " + line
			}
			fmt.Fprintln(to, indent+line)
		}
	}
	if found {
		fmt.Fprintln(to, indent+"  kubectl "+command)
	}
}

// counted is a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Colours of a terminal.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

// paint colours a text, on a terminal alone, and unless NO_COLOR is set.
func (p *plugin) paint(colour, text string) string {
	if colour == "" || os.Getenv("NO_COLOR") != "" || !p.isTerminal(p.Out) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func isTerminal(stream any) bool {
	file, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}
