package webhook

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// A testCase is one file of testdata/cases: what a client sends and what the
// cluster holds. Beside it, in <name>.answer.yaml, stands what comes of it.
//
// Digests are written as <digest configmap/web-message>: of what the source
// holds now, selected as the object references it. "before" in it is what the
// source held earlier; "under the old key" and "under a lost key" say which
// key made it.
type testCase struct {
	// Case is one sentence: what this is and what must come of it.
	Case         string
	Operation    admissionv1.Operation
	FieldManager string
	// Ours: our own service account sends it.
	Ours   bool
	DryRun bool
	// Stored is the object before an UPDATE.
	Stored json.RawMessage
	// Object is what the client sends in full; Change is what it changes of
	// Stored, as a merge patch.
	Object, Change json.RawMessage
	// Sources are what sources hold now, Before what they held.
	Sources, Before map[string]map[string]string
	// Edited is when all sources were last written; zero: nobody knows.
	Edited time.Time
	// Unproven: freshness cannot be proven in time.
	Unproven bool
	// Namespace are the annotations of the Namespace.
	Namespace map[string]string
	// Unlabelled: nobody opted the Namespace in; Behind: memory has it as it was before its label and its settings.
	Unlabelled, Behind bool
	// Inject is the label of the Namespace, enabled if it is empty. OptIn says which Namespaces are opted in.
	Inject string
	OptIn  checksum.OptIn
	// Dialects count.
	Dialects []checksum.Dialect
	// SecretProviderClasses count.
	SecretProviderClasses bool
	// Unread: the Namespace is not known, and cannot be read.
	Unread bool
	// NoKey: the installation's key is not there yet.
	NoKey bool
	// FoundKey: the lost key is found by a live look-up.
	FoundKey bool
	// NoLookup: nor can it be looked for.
	NoLookup bool
	// PadTemplate and PadWorkload add an annotation of so many bytes.
	PadTemplate, PadWorkload int

	pinsCase `json:",inline"`
}

type caseAnswer struct {
	Outcome  string           `json:"outcome"`
	Warnings []string         `json:"warnings,omitempty"`
	Patch    []patchOperation `json:"patch,omitempty"`
	// Made are the snapshots that were made.
	Made []string `json:"made,omitempty"`
}

type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

const (
	caseNamespace = "shop"
	ownNamespace  = "configstamp"
)

func caseFiles(t testing.TB) []string {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, ".answer.yaml") })
}

type readFiles struct {
	testCase
	fill func(string) string
}

var alreadyRead sync.Map // of readFiles, by name: YAML is slow to read under -race

// readCase reads a case, and gives the function that writes its digests out.
func readCase(t testing.TB, file string) (c testCase, fill func(string) string) {
	t.Helper()
	if read, ok := alreadyRead.Load(file); ok {
		return read.(readFiles).testCase, read.(readFiles).fill
	}
	text := readFile(t, file)
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	fill = digests(t, c, c.requested(t))
	c = testCase{}
	if err := yaml.UnmarshalStrict([]byte(fill(text)), &c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	alreadyRead.Store(file, readFiles{c, fill})
	return c, fill
}

func readFile(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// requested is the object that the client sends.
func (c *testCase) requested(t testing.TB) json.RawMessage {
	t.Helper()
	object := c.Object
	if object == nil {
		change := c.Change
		if change == nil {
			change = json.RawMessage(`{}`)
		}
		var err error
		if object, err = jsonpatch.MergePatch(c.Stored, change); err != nil {
			t.Fatal(err)
		}
	}
	object = pad(t, object, `{"spec":{"template":{"metadata":{"annotations":{"example.com/pad":%q}}}}}`, c.PadTemplate)
	return pad(t, object, `{"metadata":{"annotations":{"example.com/pad":%q}}}`, c.PadWorkload)
}

func pad(t testing.TB, object json.RawMessage, form string, size int) json.RawMessage {
	t.Helper()
	if size == 0 {
		return object
	}
	padded, err := jsonpatch.MergePatch(object, fmt.Appendf(nil, form, strings.Repeat("x", size)))
	if err != nil {
		t.Fatal(err)
	}
	return padded
}

// request is the admission request that an API server makes of a case.
func (c *testCase) request(t testing.TB, object json.RawMessage) *admissionv1.AdmissionRequest {
	t.Helper()
	kind := kindOf(t, object)
	name, _ := field(t, object, "metadata", "name").(string)
	request := &admissionv1.AdmissionRequest{
		UID:       "0b8b6f5c-7d1c-4a8c-9a55-5e7d3a6f1c11",
		Kind:      metav1.GroupVersionKind(kind.GroupVersionKind()),
		Resource:  metav1.GroupVersionResource(kind.GroupVersionResource()),
		Name:      name,
		Namespace: caseNamespace,
		Operation: c.Operation,
		DryRun:    &c.DryRun,
		Object:    runtime.RawExtension{Raw: object},
		OldObject: runtime.RawExtension{Raw: c.Stored},
	}
	options := map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "UpdateOptions"}
	if c.FieldManager != "" {
		options["fieldManager"] = c.FieldManager
	}
	request.Options.Raw, _ = json.Marshal(options)
	if c.Ours {
		request.UserInfo.Username = "system:serviceaccount:" + ownNamespace + ":configstamp"
	}
	return request
}

func kindOf(t testing.TB, object json.RawMessage) *workload.Kind {
	t.Helper()
	name := field(t, object, "kind")
	for _, kind := range newHandler(nil).Kinds {
		if kind.Name == name {
			return kind
		}
	}
	t.Fatalf("no kind %v in the table", name)
	return nil
}

func field(t testing.TB, raw json.RawMessage, path ...string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

var snapshotForm = regexp.MustCompile(`<snapshot (configmap/[a-z0-9.-]+)( before)?>`)

// snapshots replaces <snapshot …> by the name.
func snapshots(t testing.TB, c testCase, text string) string {
	t.Helper()
	return snapshotForm.ReplaceAllStringFunc(text, func(form string) string {
		parts := snapshotForm.FindStringSubmatch(form)
		source, err := checksum.ParseSource(parts[1])
		held := c.Sources
		if parts[2] != "" {
			held = c.Before
		}
		content := contents(t, held)[source]
		if err != nil || content == nil {
			return form
		}
		return checksum.NewRing(newKey).SnapshotName(caseNamespace, source, content)
	})
}

var digestForm = regexp.MustCompile(`<digest ((?:configmap|secret|secretproviderclass)/[a-z0-9.-]+)( before)?( under the old key| under a lost key)?>`)

// digests gives the function that replaces <digest …> by the value.
func digests(t testing.TB, c testCase, object json.RawMessage) func(string) string {
	t.Helper()
	var references []checksum.Reference
	if decoded, err := kindOf(t, object).Decode(object); err == nil { // a case may be garbage
		references, _ = decoded.References()
	}
	selections := map[checksum.Source]checksum.Selection{}
	policy := checksum.DefaultPolicy()
	policy.SecretProviderClasses = true
	for _, s := range checksum.Selections(references, policy) {
		selections[s.Source] = s
	}
	return func(text string) string {
		return digestForm.ReplaceAllStringFunc(snapshots(t, c, text), func(form string) string {
			parts := digestForm.FindStringSubmatch(form)
			source, err := checksum.ParseSource(parts[1])
			if err != nil {
				t.Fatal(err)
			}
			selection, ok := selections[source]
			if !ok { // no longer referenced
				selection = checksum.Selection{Source: source, All: true}
			}
			held, key := c.Sources, newKey
			if parts[2] != "" {
				held = c.Before
			}
			switch parts[3] {
			case " under the old key":
				key = oldKey
			case " under a lost key":
				key = lostKey
			}
			return checksum.NewRing(key).Digest(caseNamespace, selection, contents(t, held)[source])
		})
	}
}

// foreignOnly is an object without anything that is ours to write.
func foreignOnly(t testing.TB, kind *workload.Kind, raw []byte) any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	strip := func(at map[string]any, ours func(string) bool) {
		metadata, _ := at["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		for key := range annotations {
			if ours(key) {
				delete(annotations, key)
			}
		}
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
		if len(metadata) == 0 {
			delete(at, "metadata")
		}
	}
	strip(object, checksum.IsOursOnWorkload)
	template := object
	for _, name := range kind.Template {
		template, _ = template[name].(map[string]any)
	}
	if template != nil {
		strip(template, checksum.IsOursOnTemplate)
	}
	return object
}

func sameButOurs(t testing.TB, kind *workload.Kind, before, after []byte) bool {
	t.Helper()
	return reflect.DeepEqual(foreignOnly(t, kind, before), foreignOnly(t, kind, after))
}
