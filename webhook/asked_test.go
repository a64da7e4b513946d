package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/reason"
)

// told are the outcomes among warnings.
func told(warnings []string) (codes []string) {
	for _, warning := range warnings {
		if message, _ := reason.Parse(warning); message.Outcome() != reason.NoOutcome {
			codes = append(codes, message.Code)
		}
	}
	return codes
}

// TestAskedWhatWouldRoll: the dry run of a rolling re-admission is always answered with
// one outcome, the first of the warnings, whatever is wrong.
func TestAskedWhatWouldRoll(t *testing.T) {
	unknown := errors.New("the caches are not full")
	for name, test := range map[string]struct {
		request string // a case
		change  func(*testCase, *Handler, *cluster, *admissionv1.AdmissionRequest)
		want    string
	}{
		"true":                    {"rolling-true", nil, "in-step"},
		"true, by a baseline":     {"rolling-true-baseline", nil, "in-step"},
		"pinned":                  {"pins-rolling-true", nil, "in-step"},
		"untrue":                  {"rolling-untrue", nil, "would-roll"},
		"untrue, of a CronJob":    {"rolling-cronjob", nil, "would-roll"},
		"an order during a pause": {"rolling-paused", nil, "would-roll"},
		"a changed template":      {"rolling-changed-template", nil, "would-roll"},
		"changed, sources missing": {"rolling-changed-template", func(_ *testCase, _ *Handler, c *cluster, _ *admissionv1.AdmissionRequest) {
			c.contents = checksum.Contents{}
		}, "would-roll"},
		"unrecorded":            {"rolling-unrecorded", nil, "would-record"},
		"observe":               {"rolling-observed", nil, "observed"},
		"missing":               {"rolling-held", nil, "missing"},
		"deleted":               {"rolling-deleted-source", nil, "missing"},
		"an unreadable setting": {"rolling-unreadable", nil, "unreadable"},
		"true, and a setting is unreadable": {"rolling-true", func(_ *testCase, _ *Handler, c *cluster, _ *admissionv1.AdmissionRequest) {
			c.settings = map[string]string{"configstamp.dev/mode": "x"}
		}, "unreadable"},
		"an unreadable template": {"rolling-true", func(_ *testCase, _ *Handler, _ *cluster, r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-app"},"spec":{"template":{"spec":{"containers":"\u0007\n"}}}}`)
		}, "unreadable"},
		"an unreadable template before": {"rolling-true", func(_ *testCase, _ *Handler, _ *cluster, r *admissionv1.AdmissionRequest) {
			r.OldObject.Raw = []byte(`{"spec":7}`)
		}, "unreadable"},
		"without a name": {"rolling-true", func(_ *testCase, _ *Handler, _ *cluster, r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(strings.Replace(string(r.Object.Raw), "web-app", "", 1))
		}, "unreadable"},
		"not proven":          {"rolling-unproven", nil, "deferred"},
		"a Namespace unread":  {"rolling-namespace-unread", nil, "deferred"},
		"a key not looked up": {"rolling-key-not-looked-up", nil, "deferred"},
		"no key yet": {"rolling-true", func(_ *testCase, h *Handler, _ *cluster, _ *admissionv1.AdmissionRequest) {
			h.Keys = &keyring{none: true}
		}, "deferred"},
		"caches that are not full": {"rolling-true", func(_ *testCase, _ *Handler, c *cluster, _ *admissionv1.AdmissionRequest) {
			c.unproven, c.unknown = unknown, unknown
		}, "deferred"},
		"too large": {"rolling-untrue", func(c *testCase, _ *Handler, _ *cluster, r *admissionv1.AdmissionRequest) { enlarge(t, c, r) }, "oversize"},
		"opted out": {"rolling-true", func(_ *testCase, _ *Handler, _ *cluster, r *admissionv1.AdmissionRequest) {
			label(r, checksum.InjectDisabled)
		}, "opted-out"},
		"not opted in": {"rolling-true", func(_ *testCase, _ *Handler, c *cluster, _ *admissionv1.AdmissionRequest) { c.unlabelled = true }, "opted-out"},
		"a lost key":   {"rolling-key-lost", nil, "key-lost"},
		"a panic":      {"rolling-true", func(_ *testCase, _ *Handler, c *cluster, _ *admissionv1.AdmissionRequest) { c.panics = "boom" }, "declined"},
		"owned": {"rolling-true", func(_ *testCase, _ *Handler, _ *cluster, r *admissionv1.AdmissionRequest) {
			own(r)
		}, "declined"},
		"a kind of none": {"rolling-true", func(_ *testCase, _ *Handler, _ *cluster, r *admissionv1.AdmissionRequest) {
			r.Resource.Resource = "widgets"
		}, "declined"},
		"a kind that is stamped at creation alone": {"rolling-true", func(_ *testCase, _ *Handler, _ *cluster, r *admissionv1.AdmissionRequest) {
			r.Resource.Resource = "replicasets"
		}, "declined"},
		"a subresource": {"rolling-true", func(_ *testCase, _ *Handler, _ *cluster, r *admissionv1.AdmissionRequest) { r.SubResource = "scale" }, "declined"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := readCase(t, "testdata/cases/"+test.request+".yaml")
			c.DryRun = true
			handler, request := c.handler(t), c.request(t, c.requested(t))
			if test.change != nil {
				sources, _ := handler.Sources.(*cluster)
				test.change(&c, handler, sources, request)
			}
			answer := admit(silent(t), t, handler, request)
			if codes := told(answer.Warnings); !slices.Equal(codes, []string{test.want}) || told(answer.Warnings[:1]) == nil {
				t.Errorf("warned %q, want %q first, and no other outcome", answer.Warnings, test.want)
			}
		})
	}
}

// enlarge leaves no room for stamps on the template, which stays as it is.
func enlarge(t *testing.T, c *testCase, r *admissionv1.AdmissionRequest) {
	t.Helper()
	r.Object.Raw = pad(t, c.Stored, `{"spec":{"template":{"metadata":{"annotations":{"example.com/pad":%q}}}}}`, 245700)
	r.OldObject.Raw = r.Object.Raw
}

func label(r *admissionv1.AdmissionRequest, inject string) {
	r.Object.Raw = []byte(strings.Replace(string(r.Object.Raw), `"name":"web-app"`, fmt.Sprintf(`"name":"web-app","labels":{%q:%q}`, checksum.InjectLabel, inject), 1))
}

func own(r *admissionv1.AdmissionRequest) {
	const owner = `"name":"web-app","ownerReferences":[{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","name":"o","uid":"u","controller":true}]`
	r.Object.Raw = []byte(strings.Replace(string(r.Object.Raw), `"name":"web-app"`, owner, 1))
	r.OldObject.Raw = r.Object.Raw
}

// An answer's warnings are bounded, as the API server cuts them at 4 KiB in all: the last are
// left out, and counted.
func TestTheOutcomeIsAmongTheWarningsThatAreSent(t *testing.T) {
	c, _ := readCase(t, "testdata/cases/rolling-held.yaml")
	c.DryRun = true
	request := c.request(t, c.requested(t))
	var more strings.Builder
	for i := range 3 * admission.MaxWarnings {
		fmt.Fprintf(&more, `{"secretRef":{"name":"none-%d"}},`, i)
	}
	request.Object.Raw = []byte(strings.Replace(string(request.Object.Raw), `"envFrom":[`, `"envFrom":[`+more.String(), 1))
	request.OldObject.Raw = request.Object.Raw
	answer := admit(silent(t), t, c.handler(t), request)
	if codes := told(answer.Warnings); len(answer.Warnings) != admission.MaxWarnings+1 || !slices.Equal(codes, []string{"missing"}) {
		t.Errorf("%d warnings, of them outcomes %q", len(answer.Warnings), codes)
	}
	if size, last := len(strings.Join(answer.Warnings, "")), answer.Warnings[admission.MaxWarnings]; size > 4<<10 || !strings.HasSuffix(last, " more") {
		t.Errorf("%d bytes, the last is %q", size, last)
	}
}

// TestWhoElseAsksIsAnsweredAsEver: no outcome but for the dry run of a rolling
// re-admission; and that one says what the order itself would be told, and do.
func TestWhoElseAsksIsAnsweredAsEver(t *testing.T) {
	for i, file := range caseFiles(t) {
		if testing.Short() && i%4 != 0 {
			continue
		}
		c, _ := readCase(t, file)
		if c.Unmade != nil {
			continue // a dry run makes no snapshot, and so cannot know
		}
		for _, manager := range []string{"", "kubectl-edit", checksum.RecordingManager, checksum.RollingManager} {
			answers := map[bool]*admissionv1.AdmissionResponse{}
			for _, dry := range []bool{false, true} {
				asked := c
				asked.DryRun, asked.FieldManager = dry, manager
				answers[dry] = admit(silent(t), t, asked.handler(t), asked.request(t, asked.requested(t)))
			}
			want := 0
			if c.Operation == admissionv1.Update && manager == checksum.RollingManager {
				want = 1
			}
			if codes := told(answers[true].Warnings); len(codes) != want {
				t.Errorf("%s by %q: a dry run is told %q, want %d outcomes", file, manager, codes, want)
				continue
			}
			answers[true].Warnings = answers[true].Warnings[want:]
			if diff := cmp.Diff(asText(t, answers[false]), asText(t, answers[true])); diff != "" {
				t.Errorf("%s by %q: its dry run is answered otherwise (-real +dry):\n%s", file, manager, diff)
			}
		}
	}
}

func asText(t *testing.T, answer *admissionv1.AdmissionResponse) string {
	t.Helper()
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), `"warnings":[],`, "", 1)
}
