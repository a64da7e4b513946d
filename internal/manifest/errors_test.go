package manifest_test

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/internal/manifest"
)

// What cannot be read is told of by file and line, and nothing of what it holds is.
func TestWhatCannotBeReadIsToldByFileAndLine(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"an indentation that is wrong":     {"a:\n  b: 1\n c: 2\n", "a.yaml:3: it is not YAML: did not find expected key"},
		"a colon too many, in line one":    {"a: b: c\n", "a.yaml:1: it is not YAML: mapping values are not allowed in this context"},
		"a colon too many, in line five":   {"---\na: 1\n---\nb: 1\nc: d: e\n", "a.yaml:5: it is not YAML: mapping values are not allowed in this context"},
		"a tab":                            {"a:\n\tb: hunter2\n", "a.yaml:2: it is not YAML: found character that cannot start any token"},
		"a bracket that is not closed":     {"a: 1\nb: [hunter2,\nc: d\n", "a.yaml:3: it is not YAML: did not find expected ',' or ']'"},
		"a quote that is not closed":       {"a: 1\nb: \"hunter2\nc: d\n", "a.yaml:3: it is not YAML: found unexpected end of stream"},
		"an alias of nothing":              {"a: *b\n", "a.yaml:1: it is not YAML: unknown anchor 'b' referenced"},
		"an alias within its anchor":       {"a: &a [*a]\n", "a.yaml:1: it is YAML that kubectl cannot read, such as an alias within its own anchor, or an unknown tag"},
		"a mapping as a key":               {"a: 1\n{b: hunter2}: c\n", "a.yaml:2: a key is not a text"},
		"a template that was not rendered": {"a: {{ .Values.a }}\n", `a.yaml:1: a key is not a text (it holds "{{": is it a template that has to be rendered first?)`},
		"a template in a place for a key":  {"a:\n{{- if .Values.a }}\n", `a.yaml:2: it is not YAML: could not find expected ':' (it holds "{{": is it a template that has to be rendered first?)`},
		"JSON that is cut off":             {"{\"a\":\n \"hunter2\"", "a.yaml:2: it is neither JSON nor YAML: did not find expected ',' or '}'"},
		"bytes that are no text":           {"a: 1\nb: \xff\n", "a.yaml:2: it is not UTF-8"},
		"a character that cannot be":       {"a: 1\nb: \x00\n", "a.yaml:1: it is not YAML: control characters are not allowed"},
		"another document that cannot be":  {"a: 1\n... b\n", "a.yaml:2: it is not YAML: did not find expected <document start>"},
		"a Secret that is not in base64":   {"kind: Secret\napiVersion: v1\nmetadata: {name: db}\ndata:\n  password: hunter-2\n", "a.yaml:5: Secret db: data.password: it is not base64: is it encrypted, or does it belong into stringData?"},
		"a number":                         {"kind: ConfigMap\napiVersion: v1\nmetadata: {name: web, namespace: shop}\ndata: {port: 8080}\n", "a.yaml:4: ConfigMap shop/web: data.port: it is not a string: put it in quotes"},
		"a truth, as kubectl takes it":     {"kind: ConfigMap\napiVersion: v1\nmetadata: {name: web}\ndata:\n  on: \"1\"\n  a: yes\n", "a.yaml:6: ConfigMap web: data.a: it is not a string: put it in quotes"},
		"data that is a list":              {"kind: ConfigMap\napiVersion: v1\nmetadata: {name: web}\ndata: [hunter2]\n", "a.yaml:4: ConfigMap web: data: want keys with strings"},
		"a template of another form":       {"# a comment\nkind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\nspec: {template: {spec: {containers: {app: hunter2}}}}\n", "a.yaml:2: Deployment web: reading the pod template of Deployment /web: field containers has the wrong type"},
		"annotations that are a number":    {"kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\nspec: {template: {metadata: {annotations: {a: 1}}}}\n", "a.yaml:1: Deployment web: reading a Deployment: field spec.template.metadata.annotations has the wrong type"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Annotate([]manifest.File{file(test.text)}, options(t))
			if err == nil {
				t.Fatal("no error")
			}
			if err.Error() != test.want {
				t.Errorf("error\n%s, want\n%s", err, test.want)
			}
			if strings.Contains(err.Error(), "hunter") {
				t.Error("the error quotes content")
			}
		})
	}
}

const settings = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {A: \"1\"}\n"
