package manifest

import (
	"bytes"
	"slices"
)

// split cuts a file of YAML into documents. Together they are the file, byte for
// byte: a separator belongs to the document that it begins, and so do comments and
// directives before it that no other document has.
func split(text []byte) [][]byte {
	var documents [][]byte
	start := 0
	begun, directed := false, false // whether the document has begun, or has a directive before it
	for at := 0; at < len(text); {
		next := at + lineLength(text[at:])
		line := text[at:next]
		switch {
		case marks(line, "---"):
			if begun {
				documents = append(documents, text[start:at])
				start = at
			}
			begun, directed = true, false
		case marks(line, "..."):
			if begun {
				documents = append(documents, text[start:next])
				start = next
			}
			begun = false
		case !begun && line[0] == '%':
			directed = true
		default:
			begun = begun || !directed && !isEmpty(line)
		}
		at = next
	}
	if start < len(text) {
		documents = append(documents, text[start:])
	}
	return documents
}

// lineLength is how long the first line of a text is, with its break.
func lineLength(text []byte) int {
	for i, c := range text {
		switch {
		case c == '\n':
			return i + 1
		case c == '\r' && (i+1 == len(text) || text[i+1] != '\n'):
			return i + 1
		}
	}
	return len(text)
}

// marks reports whether a line is a marker of YAML's: nothing is before it, and white
// space behind it.
func marks(line []byte, marker string) bool {
	rest, found := bytes.CutPrefix(line, []byte(marker))
	return found && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// isEmpty reports whether a line holds nothing but a comment.
func isEmpty(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}

// lineAt is the number of the line, from 1, of a byte of a text.
func lineAt(text []byte, at int) int {
	line := 1
	for next := 0; ; line++ {
		next += lineLength(text[next:])
		if next > at || next >= len(text) {
			return line
		}
	}
}

// Join makes one stream of files, with a separator between two of them that have none. A
// file alone stays as it is.
func Join(texts [][]byte) []byte {
	texts = slices.DeleteFunc(slices.Clone(texts), func(text []byte) bool { return len(text) == 0 })
	if len(texts) < 2 {
		return bytes.Join(texts, nil)
	}
	var all []byte
	for i, text := range texts {
		text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		if i > 0 && !bytes.HasSuffix(all, []byte("\n")) {
			all = append(all, '\n')
		}
		// Where JSON comes first, kubectl would take what follows for JSON too.
		jsonFirst := i == 0 && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))
		if jsonFirst || i > 0 && !marks(text[:lineLength(text)], "---") {
			all = append(all, "---\n"...)
		}
		all = append(all, text...)
	}
	return all
}
