package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	kyaml "sigs.k8s.io/yaml"
)

// File is one file of manifests.
type File struct {
	// Name is what people know it by.
	Name string
	Text []byte
}

// document is one document of a file.
type document struct {
	file string
	// line is that of its first byte in the file, from 1.
	line   int
	text   []byte
	isJSON bool
	root   *node // nil: it holds nothing
	// value is what it says, as encoding/json gives it.
	value any
}

// read reads the documents of a file.
func read(file File) ([]*document, error) {
	if at := invalid(file.Text); at >= 0 {
		return nil, fmt.Errorf("%s:%d: it is not UTF-8", file.Name, lineAt(file.Text, at))
	}
	var documents []*document
	var errs []error
	line := 1
	for _, text := range split(file.Text) {
		parts, isJSON := splitJSON(text)
		if !isJSON {
			parts = [][]byte{text}
		}
		for _, part := range parts {
			d := &document{file: file.Name, line: line, text: part, isJSON: isJSON}
			if err := d.read(); err != nil {
				errs = append(errs, err)
			}
			documents = append(documents, d)
			line += breaks(part)
		}
	}
	return documents, errors.Join(errs...)
}

// invalid is the first byte that is not UTF-8, -1 when there is none.
func invalid(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// breaks counts line breaks.
func breaks(text []byte) int {
	n := bytes.Count(text, []byte("\r")) + bytes.Count(text, []byte("\n")) - bytes.Count(text, []byte("\r\n"))
	return n
}

func (d *document) read() (err error) {
	tree := treeOfYAML
	if d.isJSON {
		tree = treeOfJSON
	}
	if d.root, err = tree(d.text); err != nil {
		return d.located(err)
	}
	if d.root == nil {
		return nil
	}
	if d.value, err = d.decode(d.text); err != nil {
		return d.located(err)
	}
	return nil
}

// decode is what a text says, as kubectl reads it.
func (d *document) decode(text []byte) (value any, err error) {
	if !d.isJSON {
		if text, err = kyaml.YAMLToJSON(text); err != nil { // which may quote content
			return nil, fault{at: d.root.at, says: "it is YAML that kubectl cannot read, such as an alias within its own anchor, or an unknown tag"}
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fault{at: d.root.at, says: "it cannot be read as JSON"}
	}
	return value, nil
}

// located is an error with file and line.
func (d *document) located(err error) error {
	at, says := 0, err.Error()
	if f := (fault{}); errors.As(err, &f) {
		at, says = f.at, f.says
	}
	return fmt.Errorf("%s: %s", d.place(at), says)
}

// place is a byte of the document as people look for it.
func (d *document) place(at int) string {
	return fmt.Sprintf("%s:%d", d.file, d.line+breaks(d.text[:min(at, len(d.text))]))
}
