package manifest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/manifest"
)

var annotation = regexp.MustCompile(`checksum/[a-z]+\.([a-z0-9._-]+)"?: ['"]([0-9a-f]{64})`)

// values are the annotations in a text, by name of the source.
func values(text []byte) map[string]string {
	found := map[string]string{}
	for _, parts := range annotation.FindAllSubmatch(text, -1) {
		found[string(parts[1])] = string(parts[2])
	}
	return found
}

const user = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: app
        env:
        - {name: A, valueFrom: {configMapKeyRef: {name: settings, key: A}}}
        - {name: P, valueFrom: {secretKeyRef: {name: db, key: password}}}
`

func configMap(rest string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n" + rest
}

func secret(rest string) string {
	return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: db}\n" + rest
}

// What changes a value, and what does not.
func TestAValueIsOfTheKeysThatAreUsed(t *testing.T) {
	const sum, pass = "settings", "db"
	of := func(config, password string) map[string]string {
		return values(annotate(t, options(t), file(user+configMap(config)+secret(password))).Texts[0])
	}
	before := of("data: {A: one, B: two}\n", "data: {password: aHVudGVyMg==}\n")
	if len(before) != 2 {
		t.Fatalf("annotations %v", before)
	}
	for name, test := range map[string]struct {
		config, password string
		changed          []string
	}{
		"another value of a used key":       {"data: {A: ONE, B: two}\n", "data: {password: aHVudGVyMg==}\n", []string{sum}},
		"another value of an unused key":    {"data: {A: one, B: TWO}\n", "data: {password: aHVudGVyMg==, more: aA==}\n", nil},
		"labels":                            {"data: {A: one}\nimmutable: true\n", "type: Opaque\ndata: {password: aHVudGVyMg==}\n", nil},
		"another style":                     {"data:\n  A: |-\n    one\n", "data:\n  password: |\n    aHVu\n    dGVyMg==\n", nil},
		"stringData of the same content":    {"data: {A: one}\n", "stringData: {password: hunter2}\n", nil},
		"stringData in the place of data":   {"data: {A: one}\n", "data: {password: aHVudGVyMg==}\nstringData: {password: hunter3}\n", []string{pass}},
		"a value that is the same as bytes": {"data: {A: one}\nbinaryData: {B: dHdv}\n", "data: {password: aHVudGVyMg==}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			after := of(test.config, test.password)
			var changed []string
			for _, source := range []string{sum, pass} {
				if after[source] != before[source] {
					changed = append(changed, source)
				}
			}
			if strings.Join(changed, " ") != strings.Join(test.changed, " ") || len(after) != 2 {
				t.Errorf("changed: %v, want %v; annotations %v", changed, test.changed, after)
			}
		})
	}
}

// A Secret has no checksum that helps to guess it, unless somebody wants that.
func TestASecretHasAChecksumOnlyByAKeyOrByWish(t *testing.T) {
	input := file(user + configMap("data: {A: one}\n") + secret("stringData: {password: hunter2}\n"))
	without := annotate(t, options(t, unkeyed), input)
	if got := values(without.Texts[0]); len(got) != 1 || got["settings"] == "" {
		t.Errorf("without a key: %v", got)
	}
	want := "no checksum is written for secret/db: a plain one lets everybody who can read the workload try out guesses of the Secret; " +
		"pass --key-file with a key (openssl rand -hex 32 > key), or --allow-guessable where nothing in them can be guessed"
	if got := strings.Join(without.Warnings, "\n"); got != want {
		t.Errorf("warnings\n%s, want\n%s", got, want)
	}
	keyed := annotate(t, options(t), input)
	plain := annotate(t, options(t, func(o *manifest.Options) { o.Secrets = new(checksum.AnnotationHash) }), input)
	if len(keyed.Warnings)+len(plain.Warnings) > 0 {
		t.Errorf("warnings %q %q", keyed.Warnings, plain.Warnings)
	}
	k, p := values(keyed.Texts[0]), values(plain.Texts[0])
	if k["db"] == "" || p["db"] == "" || k["db"] == p["db"] {
		t.Errorf("keyed %q, plain %q", k["db"], p["db"])
	}
	if k["settings"] != p["settings"] || k["settings"] != values(without.Texts[0])["settings"] {
		t.Error("the value of a ConfigMap depends on the key: a key that comes later would roll what uses no Secret")
	}
}

// A manifest without a namespace is where -n says; without it, it matches its like.
func TestNamespaces(t *testing.T) {
	place := func(text, namespace string) string {
		if namespace == "" {
			return text
		}
		return strings.ReplaceAll(text, "metadata: {", "metadata: {namespace: "+namespace+", ")
	}
	for name, test := range map[string]struct {
		workload, source, n string
		found               bool
		warning             string
	}{
		"neither has one":            {"", "", "", true, ""},
		"neither has one, with -n":   {"", "", "shop", true, ""},
		"both have the same":         {"shop", "shop", "", true, ""},
		"both have another than -n":  {"shop", "shop", "other", true, ""},
		"they have two":              {"shop", "other", "", false, "configmap/settings; no"},
		"the source is where -n is":  {"", "shop", "shop", true, ""},
		"the user is where -n is":    {"shop", "", "shop", true, ""},
		"the source has none":        {"shop", "", "", false, "configmap/settings (one without a namespace is at a.yaml:13: give its namespace with -n); no"},
		"the user has none":          {"", "shop", "", false, "configmap/settings (one of namespace shop is at a.yaml:13: give the workload's namespace with -n); no"},
		"the user is elsewhere":      {"shop", "", "other", false, "configmap/settings; no"},
		"the source is not for here": {"", "shop", "other", false, "configmap/settings; no"},
	} {
		t.Run(name, func(t *testing.T) {
			text := place(strings.Replace(user, "---\n", "", 1), test.workload) + place(configMap("data: {A: one}\n"), test.source)
			result := annotate(t, options(t, in(test.n)), file(strings.Replace(text, "secretKeyRef", "other", 1)))
			if got := values(result.Texts[0])["settings"] != ""; got != test.found {
				t.Errorf("found: %v", got)
			}
			said := strings.Join(result.Warnings, "\n")
			if (said != "") == test.found || !strings.Contains(said, test.warning) {
				t.Errorf("warnings %q, want %q", said, test.warning)
			}
		})
	}
}

// Files see each other; each comes out by itself.
func TestFilesAreOneWhole(t *testing.T) {
	result := annotate(t, options(t), manifest.File{Name: "web.yaml", Text: []byte(user)},
		manifest.File{Name: "config.json", Text: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"A":"one"}}`)},
		manifest.File{Name: "more.yaml", Text: []byte(secret("stringData: {password: a}\n") + secret("stringData: {password: b}\n"))},
		manifest.File{Name: "empty.yaml"})
	if got := values(result.Texts[0]); len(got) != 2 {
		t.Errorf("annotations %v", got)
	}
	if string(result.Texts[1]) != `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"A":"one"}}` || len(result.Texts[3]) > 0 {
		t.Errorf("other files changed: %q", result.Texts[1:])
	}
	if got := strings.Join(result.Warnings, "\n"); got != "more.yaml:7: secret/db occurs twice, first at more.yaml:2: this one counts" {
		t.Errorf("warnings %q", got)
	}
}

// A pod template that an anchor shares with something else cannot be edited in place.
// There is an error then, and no output that says something else.
func TestWhatIsSharedIsNotChanged(t *testing.T) {
	const list = `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {A: "1"}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: &meta
    name: web
  spec:
    template:
      metadata: *meta
      spec: {containers: [{name: app, envFrom: [{configMapRef: {name: settings}}]}]}
`
	_, err := manifest.Annotate([]manifest.File{file(list)}, options(t))
	want := "a.yaml:8: an annotation cannot be written here without changing something else: if a pod template is shared by an anchor (&, *, <<), write it out"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	block := strings.Replace(user, "metadata: {name: web}", "metadata: {name: web}", 1)
	block = strings.Replace(block, "    spec:\n", "    metadata:\n      annotations:\n        checksum/configmap.settings: >-\n          old\n    spec:\n", 1)
	_, err = manifest.Annotate([]manifest.File{file(block + configMap("data: {A: one}\n"))}, options(t))
	want = "a.yaml:7: the annotations of Deployment web's pod template cannot be edited: an annotation is there that is not on one line: write it in quotes"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The manifests of this repository come out as they went in.
func TestManifestsWithoutReferencesToEachOtherStayAsTheyAre(t *testing.T) {
	for _, path := range []string{"../../deploy/install.yaml", "../../deploy/install-self-managed.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		result := annotate(t, options(t), manifest.File{Name: filepath.Base(path), Text: text})
		if !bytes.Equal(result.Texts[0], text) {
			t.Errorf("%s changed", path)
		}
	}
}
