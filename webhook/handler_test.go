package webhook

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

var update = flag.Bool("update", false, "write the answers of testdata/cases anew; read the difference before you commit it")

// TestCases sends each request of testdata/cases and compares the answer with
// the file beside it. Of every answer it checks what must hold of all: the
// patch applies, nothing that is not ours changes, admitting the result again
// changes nothing, and what was stamped is true to a rolling re-admission.
func TestCases(t *testing.T) {
	sentences := map[string]string{}
	for _, file := range caseFiles(t) {
		name := strings.TrimSuffix(file, ".yaml")
		t.Run(strings.TrimPrefix(name, "testdata/cases/"), func(t *testing.T) {
			c, fill := readCase(t, file)
			if other := sentences[c.Case]; c.Case == "" || other != "" {
				t.Errorf("a case has a sentence of its own; %q stands also in %q", c.Case, other)
			}
			sentences[c.Case] = file

			handler := c.handler(t)
			sent := c.requested(t)
			request := c.request(t, sent)
			response := admit(silent(t), t, handler, request)
			got := answerOf(t, response)
			if store := snapshotsOf(handler); store != nil {
				got.Made = slices.Clone(store.made)
			}
			if *update {
				writeAnswer(t, name+".answer.yaml", c, got, fill)
			}
			var want caseAnswer
			if err := yaml.UnmarshalStrict([]byte(fill(readFile(t, name+".answer.yaml"))), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}

			result := apply(t, sent, response.Patch)
			if !sameButOurs(t, kindOf(t, sent), sent, result) {
				t.Errorf("something that is not ours changed:\nbefore %s\nafter  %s", sent, result)
			}
			again := admit(silent(t), t, handler, c.request(t, result))
			if again.Patch != nil {
				t.Errorf("a reinvocation changes it again: %s", again.Patch)
			}
			if got.Outcome == reason.Stamped.Label() && !c.Unproven && !c.NoRevisions {
				rolling := testCase{Operation: admissionv1.Update, FieldManager: checksum.RollingManager, Stored: result}
				if again := admit(silent(t), t, handler, rolling.request(t, result)); again.Patch != nil {
					t.Errorf("what was stamped is not true: %s", again.Patch)
				}
			}
		})
	}
}

func (c *testCase) handler(t testing.TB) *Handler {
	sources := &cluster{contents: contents(t, c.Sources), settings: c.Namespace, unlabelled: c.Unlabelled, inject: c.Inject, optIn: c.OptIn, behind: c.Behind, edited: c.Edited}
	if c.Unread {
		sources.unread = errUnproven
	}
	if c.Unproven {
		sources.unproven = errUnproven
	}
	handler := newHandler(sources)
	handler.Dialects, handler.OwnNamespace = c.Dialects, ownNamespace
	handler.Policy.SecretProviderClasses = c.SecretProviderClasses
	keys := &keyring{none: c.NoKey, found: c.FoundKey}
	if c.NoLookup {
		keys.unreachable = errUnproven
	}
	handler.Keys = keys
	handler.Revisions = c.kept(t)
	c.pinning(t, handler)
	return handler
}

func answerOf(t testing.TB, response *admissionv1.AdmissionResponse) caseAnswer {
	t.Helper()
	answer := caseAnswer{Outcome: response.AuditAnnotations["outcome"], Warnings: response.Warnings}
	if response.Patch != nil {
		if err := json.Unmarshal(response.Patch, &answer.Patch); err != nil {
			t.Fatal(err)
		}
	}
	return answer
}

func apply(t testing.TB, object, patch []byte) []byte {
	t.Helper()
	if patch == nil {
		return object
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("reading patch %s: %v", patch, err)
	}
	result, err := operations.Apply(object)
	if err != nil {
		t.Fatalf("applying patch %s to %s: %v", patch, object, err)
	}
	return result
}

// writeAnswer writes an answer file, digests in their symbolic form.
func writeAnswer(t *testing.T, file string, c testCase, answer caseAnswer, fill func(string) string) {
	t.Helper()
	text, err := yaml.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	symbolic := string(text)
	for _, time := range []string{"", " before"} {
		for _, name := range slices.Concat(slices.Sorted(maps.Keys(c.Sources)), slices.Sorted(maps.Keys(c.Before))) {
			form := "<snapshot " + name + time + ">"
			if value := fill(form); value != form {
				symbolic = strings.ReplaceAll(symbolic, value, form)
			}
		}
	}
	for _, key := range []string{"", " under the old key", " under a lost key"} {
		for _, time := range []string{"", " before"} {
			names := append(slices.Sorted(maps.Keys(c.Sources)), slices.Sorted(maps.Keys(c.Before))...)
			for _, name := range names {
				form := "<digest " + name + time + key + ">"
				if value := fill(form); value != checksum.Absent {
					symbolic = strings.ReplaceAll(symbolic, value, form)
				}
			}
		}
	}
	if err := os.WriteFile(file, []byte(symbolic), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCasesAreComplete keeps the case files honest: every outcome and every
// kind of the table has one.
func TestCasesAreComplete(t *testing.T) {
	outcomes := map[string]bool{}
	kinds := map[string]bool{}
	for _, file := range caseFiles(t) {
		c, fill := readCase(t, file)
		var answer caseAnswer
		if err := yaml.Unmarshal([]byte(fill(readFile(t, strings.TrimSuffix(file, ".yaml")+".answer.yaml"))), &answer); err != nil {
			t.Fatal(err)
		}
		outcomes[answer.Outcome] = true
		if c.Operation == admissionv1.Create && answer.Outcome == reason.Stamped.Label() {
			kinds[kindOf(t, c.Object).Name] = true
		}
	}
	for _, outcome := range reason.Labels(reason.AdmissionOutcomes) {
		if !outcomes[outcome] && outcome != reason.NotServed.Label() { // the API server does not ask
			t.Errorf("no case ends as %s", outcome)
		}
	}
	for _, kind := range workload.Builtin() {
		if !kinds[kind.Name] {
			t.Errorf("no case creates a %s", kind.Name)
		}
	}
}

// TestLostKeyIsLookedForOnce: every stamp of a workload may have been made by
// one key, and each look-up waits for the API server.
func TestLostKeyIsLookedForOnce(t *testing.T) {
	c, _ := readCase(t, "testdata/cases/rolling-key-lost.yaml")
	handler := c.handler(t)
	admit(silent(t), t, handler, c.request(t, c.requested(t)))
	if got, want := handler.Keys.(*keyring).lookups, []string{lostKey.ID()}; !reflect.DeepEqual(got, want) {
		t.Errorf("looked for %v, want %v", got, want)
	}
}

// Of values that were made with many keys a few are looked for: each look-up is a request.
func TestManyLostKeysAreNotAllLookedFor(t *testing.T) {
	a := &facts{Facts: checksum.Facts{Held: checksum.Records{Baseline: map[checksum.Source]string{}}}}
	for i := range 100 {
		source := checksum.Source{Kind: checksum.ConfigMap, Name: fmt.Sprint("c-", i)}
		a.Selections = append(a.Selections, checksum.Selection{Source: source, All: true})
		a.Held.Baseline[source] = fmt.Sprintf("v1:%08x:all:%032d", i, 0)
	}
	keys := &keyring{}
	handler := &Handler{Keys: keys}
	if ring, err := handler.ringFor(silent(t), a); ring == nil || err != nil || len(keys.lookups) != mostLookups {
		t.Errorf("%d look-ups, want %d: %v", len(keys.lookups), mostLookups, err)
	}
}
