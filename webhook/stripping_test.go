package webhook

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/internal/reason"
)

// fight is a handler with a clock of its own, and what it reported.
type fight struct {
	*Handler
	clock     time.Time
	workloads []corev1.ObjectReference
	sentences []string
}

func newFight(t *testing.T, name string) (*fight, *admissionv1.AdmissionRequest) {
	handler, request := caseRequest(t, name)
	request.OldObject.Raw = []byte(strings.Replace(string(request.OldObject.Raw), `"name":"web-app"`, `"name":"web-app","uid":"`+string(stolen)+`"`, 1))
	handler.Revisions.(*revisions).stored = request.OldObject.Raw
	f := &fight{Handler: handler, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	handler.Now = func() time.Time { return f.clock }
	handler.Report = func(workload corev1.ObjectReference, _ reason.Reason, sentence string) {
		f.workloads = append(f.workloads, workload)
		f.sentences = append(f.sentences, sentence)
	}
	return f, request
}

const stolen types.UID = "6f1c7a52-0000-4000-8000-000000000001"

// repeat sends a request again and again, and says how often people were told.
func (f *fight) repeat(t *testing.T, request *admissionv1.AdmissionRequest, times int, every time.Duration) int {
	t.Helper()
	before := len(f.sentences)
	for range times {
		admit(silent(t), t, f, request)
		f.clock = f.clock.Add(every)
	}
	return len(f.sentences) - before
}

// TestStripping_IsReported: a controller that writes the whole object every few
// seconds is named to people, once an hour.
func TestStripping_IsReported(t *testing.T) {
	f, request := newFight(t, "apply-without-stamps")
	setManager(request, "pulp-operator")
	if n := f.repeat(t, request, strippingLimit-1, 3*time.Second); n != 0 {
		t.Fatalf("reported %d times before the limit", n)
	}
	if n := f.repeat(t, request, 1, 3*time.Second); n != 1 {
		t.Fatalf("reported %d times at the limit", n)
	}
	if want := (corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: caseNamespace, Name: "web-app", UID: stolen}); f.workloads[0] != want {
		t.Errorf("reported %+v, want %+v", f.workloads[0], want)
	}
	for _, want := range []string{`field manager "pulp-operator"`, "configstamp.dev/inject: disabled"} {
		if !strings.Contains(f.sentences[0], want) {
			t.Errorf("no %s in %q", want, f.sentences[0])
		}
	}
	if n := f.repeat(t, request, 24*30+1, 2*time.Minute); n != 24 {
		t.Errorf("a day of it was reported %d times, want once an hour", n)
	}
}

func setManager(request *admissionv1.AdmissionRequest, name string) {
	request.Options.Raw, _ = json.Marshal(map[string]string{"fieldManager": name}) // a text always marshals
}

// TestStripping_WithoutFieldManager: many operators name none; then the user is told.
func TestStripping_WithoutFieldManager(t *testing.T) {
	f, request := newFight(t, "apply-without-stamps")
	request.Options.Raw = nil
	request.UserInfo.Username = "system:serviceaccount:pulp:operator"
	if n := f.repeat(t, request, strippingLimit, time.Second); n != 1 || !strings.Contains(f.sentences[0], `user "system:serviceaccount:pulp:operator"`) {
		t.Errorf("reported %q", f.sentences)
	}
}

// TestStripping_IsNotReported: what people do, and what takes nothing away.
func TestStripping_IsNotReported(t *testing.T) {
	dryRun := true
	for name, test := range map[string]struct {
		request string
		change  func(*admissionv1.AdmissionRequest)
		times   int
		every   time.Duration
	}{
		"a person replaces a few times":          {"apply-without-stamps", nil, 4, time.Second},
		"a person replaces now and then":         {"apply-without-stamps", nil, 20, strippingWindow/(strippingLimit-1) + time.Second},
		"kubectl apply keeps the stamps":         {"apply-server-side", nil, 20, time.Second},
		"a label":                                {"label", nil, 20, time.Second},
		"other stamps are sent, none are absent": {"undo-of-stamps-alone", nil, 20, time.Second},
		"the template changes, it rolls anyway":  {"set-image", nil, 20, time.Second},
		"a dry run":                              {"apply-without-stamps", func(r *admissionv1.AdmissionRequest) { r.DryRun = &dryRun }, 20, time.Second},
		"the controller asks":                    {"apply-without-stamps", func(r *admissionv1.AdmissionRequest) { setManager(r, "configstamp") }, 20, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f, request := newFight(t, test.request)
			if test.change != nil {
				test.change(request)
			}
			if n := f.repeat(t, request, test.times, test.every); n != 0 {
				t.Errorf("reported %d times: %q", n, f.sentences)
			}
		})
	}
}
