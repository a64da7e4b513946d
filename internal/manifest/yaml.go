package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"
)

// treeOfYAML reads where everything stands in one document of YAML; nil: it holds
// nothing. Its error is a fault.
func treeOfYAML(text []byte) (*node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var read, more yaml.Node
	switch err := decoder.Decode(&read); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxFault(text, err)
	}
	b := &yamlTree{text: text, built: map[*yaml.Node]*node{}}
	b.lines()
	switch err := decoder.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, syntaxFault(text, err)
	default:
		return nil, fault{at: b.offset(more.Line, more.Column), says: "it is not YAML: another document begins where none can"}
	}
	return b.build(read.Content[0]), b.fault
}

// yamlTree makes nodes of nodes.
type yamlTree struct {
	text   []byte
	starts []int // of lines
	built  map[*yaml.Node]*node
	fault  error
	// The place that was looked up last; places come in order, mostly.
	line, column, at int
}

// lines finds where lines begin, as the library counts them.
func (b *yamlTree) lines() {
	b.starts = append(b.starts, 0)
	for i := 0; i < len(b.text); {
		r, size := utf8.DecodeRune(b.text[i:])
		i += size
		crlf := r == '\r' && i < len(b.text) && b.text[i] == '\n'
		if (r == '\r' && !crlf) || r == '\n' || r == '\u0085' || r == '\u2028' || r == '\u2029' {
			b.starts = append(b.starts, i)
		}
	}
}

// offset is the byte at a line and a column, both from 1; columns count characters.
func (b *yamlTree) offset(line, column int) int {
	if line < 1 || line > len(b.starts) {
		return len(b.text)
	}
	if b.line != line || b.column > column {
		b.line, b.column, b.at = line, 1, b.starts[line-1]
	}
	for ; b.column < column && b.at < len(b.text); b.column++ {
		_, size := utf8.DecodeRune(b.text[b.at:])
		b.at += size
	}
	return b.at
}

func (b *yamlTree) build(from *yaml.Node) *node {
	n := &node{at: b.offset(from.Line, from.Column), flow: from.Style&yaml.FlowStyle != 0,
		decorated: from.Anchor != "" || from.Style&yaml.TaggedStyle != 0}
	b.built[from] = n
	switch from.Kind {
	case yaml.MappingNode:
		n.form = mapping
		for i := 0; i+1 < len(from.Content); i += 2 {
			m := member{b.build(from.Content[i]), b.build(from.Content[i+1])}
			if key := m.key.follow(); key.form != scalar && b.fault == nil {
				b.fault = fault{at: m.key.at, says: "a key is not a text" + hint(b.text)}
			}
			n.members = append(n.members, m)
		}
	case yaml.SequenceNode:
		n.form = list
		for _, item := range from.Content {
			n.items = append(n.items, b.build(item))
		}
	case yaml.AliasNode:
		n.form, n.target, n.text = alias, b.built[from.Alias], from.Value
	default:
		n.text = from.Value
		switch {
		case from.Style&yaml.DoubleQuotedStyle != 0:
			n.quote = '"'
		case from.Style&yaml.SingleQuotedStyle != 0:
			n.quote = '\''
		case from.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
			n.quote = '|'
		case from.Tag == "!!null":
			n.form = null
		}
	}
	return n
}

// yamlError takes an error of the library's apart.
var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntaxFault is what is wrong with a text that is no YAML. Both libraries say where;
// the one that kubectl reads with names the place, the other what the place is part of.
func syntaxFault(text []byte, err error) error {
	if _, other := kyaml.YAMLToJSON(text); other != nil {
		if parts := yamlError.FindStringSubmatch(innermost(other).Error()); parts != nil {
			err = errors.New(parts[0])
		}
	}
	parts := yamlError.FindStringSubmatch(err.Error())
	if parts == nil {
		return fault{says: "it is not YAML"}
	}
	line, _ := strconv.Atoi(parts[1]) // "" is the first line
	if isParserError.MatchString(parts[2]) || line == 0 {
		line++ // the library counts from 0 here
	}
	starts := (&yamlTree{text: text})
	starts.lines()
	what := "it is not YAML: "
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		what = "it is neither JSON nor YAML: "
	}
	last := len(bytes.TrimRight(text, " \t\r\n"))
	return fault{at: min(starts.offset(line, 1), last), says: what + parts[2] + hint(text)}
}

// hint tells a usual reason why a text cannot be read.
func hint(text []byte) string {
	if !bytes.Contains(text, []byte("{{")) {
		return ""
	}
	return ` (it holds "{{": is it a template that has to be rendered first?)`
}

// isParserError tells errors that the library counts the lines of from 0.
var isParserError = regexp.MustCompile(`^did not find expected (key|node content|<|'-' indicator|',' or)`)

func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// fault is what is wrong at a byte of a document. It quotes no content.
type fault struct {
	at   int
	says string
}

// Error implements error.
func (f fault) Error() string { return fmt.Sprintf("at byte %d: %s", f.at, f.says) }
