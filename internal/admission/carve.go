package admission

import "bytes"

// carve takes request.object and request.oldObject out of the text of an
// AdmissionReview, without reading them: what is inside strings is passed over,
// and brackets are counted. The envelope is the review with null in their
// places; the objects are parts of the text, nil where there is none. Nothing is
// carved out of what is not JSON or writes those names with escapes: then the
// envelope is the text. Whoever reads envelope and objects finds what is wrong
// with them. values is no less than the text has, and no more than twice that: a
// bracket counts for one, and so does what a comma is before.
func carve(review []byte) (envelope, object, oldObject []byte, values int) {
	valueEnd := func(text []byte, at int) (end int) {
		return valueEnd(text, at, &values)
	}
	envelope = make([]byte, 0, usualEnvelope)
	at := 0 // all before it is in the envelope
	take := func(start int) (end int) {
		if end = valueEnd(review, start); end > 0 {
			envelope = append(append(envelope, review[at:start]...), "null"...)
			at = end
		}
		return end
	}
	inRequest := func(name []byte, start int) (end int) {
		values++
		switch {
		case review[start] != '{':
		case string(name) == `"object"`:
			if end = take(start); end > 0 {
				object = review[start:end:end]
			}
			return end
		case string(name) == `"oldObject"`:
			if end = take(start); end > 0 {
				oldObject = review[start:end:end]
			}
			return end
		}
		return valueEnd(review, start)
	}
	walk(review, skipSpace(review, 0), func(name []byte, start int) (end int) {
		values++
		if string(name) == `"request"` && review[start] == '{' {
			return walk(review, start, inRequest)
		}
		return valueEnd(review, start)
	})
	if at == 0 {
		return review, nil, nil, values
	}
	return append(envelope, review[at:]...), object, oldObject, values
}

// usualEnvelope is what most reviews take without their objects, in bytes.
const usualEnvelope = 4 << 10

// walk goes through the members of the JSON object that begins at byte at and
// returns where it ends, negative when it cannot be read. visit is given each
// name, as it is written, and where its value begins, and returns where that ends.
func walk(text []byte, at int, visit func(name []byte, start int) (end int)) (end int) {
	if at >= len(text) || text[at] != '{' {
		return -1
	}
	for {
		at = skipSpace(text, at+1)
		if at < len(text) && text[at] == '}' {
			return at + 1
		}
		nameEnd := valueEnd(text, at, new(int))
		if nameEnd < 0 || text[at] != '"' {
			return -1
		}
		name := text[at:nameEnd]
		if at = skipSpace(text, nameEnd); at >= len(text) || text[at] != ':' {
			return -1
		}
		if at = skipSpace(text, at+1); at >= len(text) {
			return -1
		}
		if at = visit(name, at); at < 0 {
			return -1
		}
		if at = skipSpace(text, at); at >= len(text) || text[at] == '}' {
			return at + 1
		}
		if text[at] != ',' {
			return -1
		}
	}
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// valueEnd is where the JSON value that begins at byte at ends, negative when
// it does not. The values in it are added to values.
func valueEnd(text []byte, at int, values *int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = stringEnd(text, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
			*values++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r', ':':
			if depth == 0 && i > at {
				return i
			}
			if text[i] == ',' {
				*values++
			}
		}
		if depth < 0 { // the end of what a number or a word stands in
			return i
		}
	}
	return -1
}

// stringEnd is where the quote is that ends the string that begins at byte at.
func stringEnd(text []byte, at int) int {
	for end := at + 1; ; end++ {
		quote := bytes.IndexByte(text[end:], '"')
		if quote < 0 {
			return -1
		}
		end += quote
		slashes := 0
		for text[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end
		}
	}
}
