package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// narrow is how many columns a line has at most, unless a word is longer.
const narrow = 80

// table prints rows under headings, each column as wide as it needs. The last column is broken into lines that fit.
type table struct {
	indent string
	rows   [][]string
	notes  map[int]string // paragraphs behind rows, by their number
}

func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	t.rows = append(t.rows, cells)
}

// print writes the table with its first row as headings.
func (t *table) print(to io.Writer) {
	last := len(t.rows[0]) - 1
	widths, before := make([]int, last), len(t.indent)
	for i := range widths {
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		before += widths[i] + 2
	}
	for n, row := range t.rows {
		head := t.indent
		for i, width := range widths {
			head += fmt.Sprintf("%-*s  ", width, row[i])
		}
		for _, line := range wrap(row[last], max(narrow-before, 24)) {
			fmt.Fprintln(to, strings.TrimRight(head+line, " "))
			head = strings.Repeat(" ", before)
		}
		if note := t.notes[n]; note != "" {
			paragraph(to, t.indent+"  ", note)
		}
	}
}

// wrap breaks a text into lines of a width. A word that is longer stays whole.
func wrap(text string, width int) []string {
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

func isTerminal(stream any) bool {
	file, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}
