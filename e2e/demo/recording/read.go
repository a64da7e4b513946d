package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// columns is where lines are broken. Where nothing happens for longer than longest, it is
// shortened to that, and a line says how long it was. What comes within together appears at
// once; reading is the time for each line of it, and most for all, until something comes next.
const (
	columns  = 96
	longest  = 2.0
	together = 0.05
	reading  = 0.3
	most     = 3.5
)

// line is one line of the page: when it appears, in seconds, and what it is.
type line struct {
	at   float64
	kind string
	text string
}

// read makes the lines of a page of a recording.
func read(from io.Reader) ([]line, error) {
	in := bufio.NewScanner(from)
	in.Buffer(nil, 1<<20)
	if !in.Scan() {
		return nil, errors.New("it is empty")
	}
	var header struct{ Version int }
	if err := json.Unmarshal(in.Bytes(), &header); err != nil || header.Version != 2 {
		return nil, fmt.Errorf("it is no asciicast v2: version %d, %w", header.Version, err)
	}
	var lines []line
	var clock, last float64
	pending := ""
	for in.Scan() {
		var at float64
		var code, text string
		if err := json.Unmarshal(in.Bytes(), &[]any{&at, &code, &text}); err != nil {
			return nil, err
		}
		if strings.ContainsAny(text, "\x1b\r\b\t") {
			return nil, fmt.Errorf("it holds more than lines: %q", text)
		}
		if gap := at - last; gap > together {
			clock += min(gap, longest)
			if gap > longest+1 {
				lines = append(lines, line{clock, "b", fmt.Sprintf("    … %.0f seconds later", gap)})
			}
		}
		last = at
		pending += text
		for {
			whole, after, found := strings.Cut(pending, "\n")
			if !found {
				break
			}
			pending = after
			lines = add(lines, clock, strings.TrimRight(whole, " "))
		}
	}
	return paced(lines), in.Err()
}

// add adds a line, broken into several when it is long. One empty line in a row is enough.
func add(lines []line, at float64, whole string) []line {
	if whole == "" && (len(lines) == 0 || lines[len(lines)-1].text == "") {
		return lines
	}
	for _, part := range broken(whole) {
		lines = append(lines, line{at, kind(whole), part})
	}
	return lines
}

// paced leaves time to read.
func paced(lines []line) []line {
	late := 0.0
	for i := 0; i < len(lines); {
		at, next := lines[i].at, i
		for ; next < len(lines) && lines[next].at == at; next++ {
			lines[next].at += late
		}
		if next < len(lines) {
			late += max(0, min(most, reading*float64(next-i))-(lines[next].at-at))
		}
		i = next
	}
	return lines
}

var amiss = regexp.MustCompile(" Warning |halted|failed|CrashLoopBackOff")

// kind is the style of a line: the demonstration prints titles, commands, what they
// printed, and what it says itself.
func kind(whole string) string {
	switch {
	case strings.HasPrefix(whole, "━━━"):
		return "t"
	case strings.HasPrefix(whole, "  $ "):
		return "c"
	case strings.HasPrefix(whole, "    ") && amiss.MatchString(whole):
		return "w"
	case strings.HasPrefix(whole, "    "):
		return "o"
	}
	return "n"
}

var gaps = regexp.MustCompile(" {3,}")

// broken breaks a line between words, once the room between its columns is little. What goes on is indented by two more; what the
// demonstration says itself is not.
func broken(whole string) []string {
	var parts []string
	indent := len(whole) - len(strings.TrimLeft(whole, " "))
	if indent > 2 {
		indent += 2
	}
	margin := strings.Repeat(" ", indent)
	if utf8.RuneCountInString(whole) > columns {
		whole = whole[:len(whole)-len(strings.TrimLeft(whole, " "))] + gaps.ReplaceAllString(strings.TrimLeft(whole, " "), "  ")
	}
	for utf8.RuneCountInString(whole) > columns {
		runes := []rune(whole)
		at := columns
		if space := slices.Index(reversed(runes[len(margin):columns+1]), ' '); space >= 0 {
			at = columns - space
		}
		parts = append(parts, strings.TrimRight(string(runes[:at]), " "))
		whole = margin + strings.TrimLeft(string(runes[at:]), " ")
	}
	return append(parts, whole)
}

func reversed(runes []rune) []rune {
	runes = slices.Clone(runes)
	slices.Reverse(runes)
	return runes
}
