package manifest

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
)

// editor changes the text of one document.
type editor struct {
	document *document
	edits    []edit
}

// edit puts a text in the place of some bytes, of none where start is end.
type edit struct {
	start, end int
	text       string
}

// annotate has the pod template of a workload carry some annotations.
func (e *editor) annotate(o *object, template []string, wanted []entry) error {
	n, value := o.node, o.value
	for _, name := range template {
		m, found := n.find(name)
		inner, isObject := value[name].(map[string]any)
		if !found || !isObject {
			return nil // without a pod template nothing is referenced but by policy
		}
		n, value = m.value.follow(), inner
	}
	missing := missingOf(value, wanted)
	if len(missing) == 0 {
		return nil
	}
	if err := e.put(n, []string{"metadata", "annotations"}, missing); err != nil {
		return e.document.located(fault{at: n.at, says: fmt.Sprintf("the annotations of %s's pod template cannot be edited: %s", o, err)})
	}
	return nil
}

// missingOf is which annotations a pod template does not have. They are put into the
// value, which then says what the text is to say.
func missingOf(template map[string]any, wanted []entry) []entry {
	annotations := inside(inside(template, "metadata"), "annotations")
	var missing []entry
	for _, w := range wanted {
		if annotations[w.key] != w.value {
			missing = append(missing, w)
			annotations[w.key] = w.value
		}
	}
	return missing
}

// inside is the object under a key, which is made when it is not there.
func inside(value map[string]any, key string) map[string]any {
	inner, isObject := value[key].(map[string]any)
	if !isObject {
		inner = map[string]any{}
		value[key] = inner
	}
	return inner
}

// put writes entries at a path below a mapping.
func (e *editor) put(in *node, path []string, entries []entry) error {
	if in.form != mapping {
		return fmt.Errorf("it is not a mapping")
	}
	for i, name := range path {
		m, found := in.find(name)
		if !found {
			return e.insert(in, nest(path[i:], entries))
		}
		if last := i == len(path)-1; last && m.value.form == alias {
			return e.extend(m.value, entries)
		}
		switch value := m.value.follow(); value.form {
		case mapping:
			in = value
		case null:
			return e.fill(in, m, nest(path[i+1:], entries))
		default:
			return fmt.Errorf("%s is not a mapping", name)
		}
	}
	var more []entry
	for _, one := range entries {
		m, found := in.own(one.key)
		if !found {
			more = append(more, one)
		} else if err := e.replace(m.value, one.value); err != nil {
			return err
		}
	}
	if len(more) == 0 {
		return nil
	}
	return e.insert(in, nest(nil, more))
}

// add notes an edit. What two workloads share, by an anchor, is edited once.
func (e *editor) add(start, end int, text string) {
	if one := (edit{start, end, text}); !slices.Contains(e.edits, one) {
		e.edits = append(e.edits, one)
	}
}

// finish is the text after all edits. It is read again, and has to say what is meant
// and nothing else: where a workload shares what was edited with something that is to
// stay, it does not.
func (e *editor) finish() ([]byte, error) {
	if len(e.edits) == 0 {
		return e.document.text, nil
	}
	slices.SortStableFunc(e.edits, func(a, b edit) int { return a.start - b.start })
	var text []byte
	at := 0
	for _, one := range e.edits {
		if one.start < at {
			return nil, e.document.located(fault{at: one.start, says: shared})
		}
		text = append(append(text, e.document.text[at:one.start]...), one.text...)
		at = one.end
	}
	text = append(text, e.document.text[at:]...)
	if value, err := e.document.decode(text); err != nil || !reflect.DeepEqual(value, e.document.value) {
		return nil, e.document.located(fault{at: e.edits[0].start, says: shared})
	}
	return text, nil
}

const shared = "an annotation cannot be written here without changing something else: " +
	"if a pod template is shared by an anchor (&, *, <<), write it out"

// insert writes pairs into a mapping, before all that it has.
func (e *editor) insert(in *node, pairs tree) error {
	if in.flow {
		open, ok := e.bracket(in)
		if !ok {
			return fmt.Errorf("its bracket cannot be found")
		}
		if len(in.members) == 0 {
			e.add(open+1, open+1, pairs.flow())
			return nil
		}
		first := in.members[0].key.at
		between := e.document.text[open+1 : first]
		if len(bytes.TrimSpace(between)) > 0 || bytes.IndexByte(between, '\n') < 0 {
			between = []byte(" ")
		}
		e.add(first, first, pairs.flowIn(string(between))+","+string(between))
		return nil
	}
	if len(in.members) == 0 {
		return fmt.Errorf("it is empty")
	}
	first := in.members[0].key.at
	start := e.lineStart(first)
	indent := e.document.text[start:first]
	if len(bytes.Trim(indent, " ")) > 0 {
		return fmt.Errorf("its first key does not begin a line")
	}
	at := start
	for at > 0 { // a comment belongs to what is below it
		before := e.lineStart(at - 1)
		if line := bytes.TrimSpace(e.document.text[before:at]); len(line) == 0 || line[0] != '#' {
			break
		}
		at = before
	}
	e.add(at, at, pairs.block(string(indent), e.step(in), e.lineBreak(at)))
	return nil
}

// fill writes pairs as the value of a key that has none, or null.
func (e *editor) fill(in *node, m member, pairs tree) error {
	if m.value.decorated || m.value.form == alias {
		return fmt.Errorf("it is empty, with an anchor or a tag")
	}
	if m.value.text != "" {
		e.add(m.value.at, m.value.at+len(m.value.text), "{"+pairs.flow()+"}")
		return nil
	}
	if in.flow {
		return fmt.Errorf("it is empty: write {}")
	}
	line := e.lineStart(m.key.at)
	indent := e.document.text[line:m.key.at]
	if len(bytes.Trim(indent, " ")) > 0 {
		return fmt.Errorf("its key does not begin a line")
	}
	at := line + lineLength(e.document.text[line:])
	nl, missing := e.lineBreak(at), ""
	if at == len(e.document.text) && !bytes.HasSuffix(e.document.text, []byte(nl)) {
		missing = nl
	}
	step := e.step(in)
	e.add(at, at, missing+pairs.block(string(indent)+step, step, nl))
	return nil
}

// extend writes a mapping, of what an alias stands for and some entries, in the place
// of the alias.
func (e *editor) extend(n *node, entries []entry) error {
	word := "*" + n.text
	if !bytes.HasPrefix(e.document.text[n.at:], []byte(word)) {
		return fmt.Errorf("its alias cannot be found")
	}
	e.add(n.at, n.at+len(word), "{<<: "+word+", "+nest(nil, entries).flow()+"}")
	return nil
}

// replace writes another value in the place of a scalar, in its quotes.
func (e *editor) replace(n *node, value string) error {
	text := e.document.text[n.at:]
	end := 0
	quote := byte('"')
	switch {
	case n.decorated:
	case n.form == alias && bytes.HasPrefix(text, []byte("*"+n.text)):
		end = len("*" + n.text)
	case n.form != scalar && n.form != null:
	case n.quote == '"' || n.quote == '\'':
		quote = n.quote
		end = quoted(text, quote)
	case n.quote == 0 && n.text != "" && bytes.HasPrefix(text, []byte(n.text)):
		end = len(n.text)
	}
	if end == 0 {
		return fmt.Errorf("an annotation is there that is not on one line: write it in quotes")
	}
	e.add(n.at, n.at+end, string(quote)+value+string(quote))
	return nil
}
