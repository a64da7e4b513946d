package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/snapshot"
	"github.com/configstamp/configstamp/internal/workload"
	"github.com/configstamp/configstamp/webhook"
)

// read is something that reads a workload or a source.
type read struct {
	name string
	size int // bytes that it is given, the keys of sources included
	do   func()
}

func (w *world) reads() (all []read) {
	held := 40 * len(w.contents) * len(w.held.Entries)
	reviews := func(name string, object, old []byte, manager, user string) {
		body, revision := w.review("deployments", object, old, manager, user), object
		if name == "create" { // else it brings a template back
			revision = w.changed
		}
		h := w.handler(revision)
		all = append(all, read{name, len(body) + held, func() { post(h, body) }})
	}
	const own = "system:serviceaccount:configstamp:configstamp"
	reviews("create", w.bare, nil, "kubectl", "jane")
	reviews("again", w.bare, nil, "kubectl", "jane")
	reviews("update", w.changed, w.stored, "kubectl", "jane")
	reviews("strip", w.bare, w.stored, "kubectl", "jane")
	reviews("undo", w.undone, w.stored, "", "jane")
	reviews("record", w.stored, w.stored, checksum.RecordingManager, own)
	reviews("roll", w.stored, w.stored, checksum.RollingManager, own)
	reviews("order", w.stored, w.stored, checksum.RollingManager, "jane")
	reviews("accept", w.stored, w.stored, checksum.AcceptManager, "jane")
	pod, pods := w.review("pods", w.pod, nil, "", "kube-controller-manager"), w.podHandler()
	return append(all,
		read{"pod", len(pod) + held, func() { post(pods, pod) }},
		read{"watch", len(w.stored), func() { w.watch(deployments(), w.stored) }},
		read{"watch protobuf", len(w.message), w.receive},
		read{"look", len(w.stored) + held, w.look},
		read{"plan", len(w.stored) + held, w.plan},
		read{"foresee", len(w.stored) + held, w.foresee},
		read{"compare", len(w.stored) + len(w.changed), func() { _, _ = deployments().OtherChanges(w.stored, w.changed) }},
		read{"pods", len(w.pods), func() { _, _, _ = workload.Pods(w.pods) }},
		read{"revision", len(w.stored), func() { _, _ = workload.DecodeRevision(w.stored) }},
		read{"managed", len(w.stored), func() {
			deployments().TemplateWritten(w.stored)
			deployments().Muted(w.stored)
		}},
		read{"source", 40 * len(w.configMap.Data), w.source},
	)
}

func deployments() *workload.Kind {
	kind, _ := workload.Builtin().Find("apps", "deployments")
	return kind
}

// receive is what the controller does with a workload that arrives in protobuf.
func (w *world) receive() {
	var whole appsv1.Deployment
	if err := whole.Unmarshal(w.message); err != nil {
		panic(err)
	}
	object, _, err := deployments().Of(&whole)
	if err != nil {
		panic(err)
	}
	w.keep(object)
}

// watch is what the controller does with a workload that arrives in JSON.
func (w *world) watch(kind *workload.Kind, text []byte) {
	object, err := kind.Decode(text)
	if err != nil {
		panic(err)
	}
	_, _ = kind.Status(text)
	w.keep(object)
	_, _ = kind.Selector(text)
}

func (w *world) keep(object *workload.Object) {
	references, _ := object.References()
	checksum.Selections(checksum.Joined(references), w.policy())
	object.Foreign([]checksum.Dialect{checksum.Reloader, checksum.Wave})
	object.RolledByOwner(workload.Builtin())
	_, _ = object.Records()
}

// look is what the controller finds out about a workload at each look.
func (w *world) look() {
	object, references, sources := w.kept()
	records, _ := object.Records()
	policy := w.policy()
	selections := checksum.Selections(references, policy)
	review := w.ring.Review(namespace, &policy, selections, records, w.content)
	review.Older(records)
	w.ring.Carried(namespace, references, sources, records, w.content)
}

// kept is what the controller keeps of the workload.
func (w *world) kept() (object *workload.Object, references []checksum.Reference, sources []checksum.Source) {
	object, err := deployments().Decode(w.stored)
	if err != nil {
		panic(err)
	}
	references, _ = object.References()
	for i := range w.selections {
		sources = append(sources, w.selections[i].Source)
	}
	return object, checksum.Joined(references), sources
}

// foresee is what an edit of the first source would do.
func (w *world) foresee() {
	object, references, sources := w.kept()
	records, _ := object.Records()
	if len(sources) == 0 {
		return
	}
	edit := impact.Edit{At: rollout.SourceRef{Namespace: namespace, Source: sources[0]}, Was: w.contents[sources[0]], Is: &checksum.Content{}}
	q := impact.Question{
		Edits: []impact.Edit{edit}, Now: time.Unix(0, 0), CanRoll: 1, Ring: w.ring,
		Workloads: []impact.Workload{{Ref: workload.Ref{Kind: deployments(), Namespace: namespace, Name: "web"}, Served: true, Policy: w.policy(), References: references, Records: records}},
		Content:   func(at rollout.SourceRef) *checksum.Content { return w.content(at.Source) },
	}
	q.Answer()
	q.TakeAsRecorded()
}

// source is what is done with a source that arrives.
func (w *world) source() {
	content := checksum.ContentOfConfigMap(w.configMap)
	of := checksum.Source{Kind: checksum.ConfigMap, Name: w.configMap.Name}
	checksum.ByEvent(content.Policy.Findings(of))
	name := w.ring.SnapshotName(namespace, of, content)
	snapshot.From(snapshot.Of(w.configMap, name, time.Unix(0, 0)))
	policy := checksum.DefaultPolicy()
	for _, s := range checksum.Selections([]checksum.Reference{{Source: of, Use: checksum.Live, All: true}}, policy) {
		w.ring.Digest(namespace, s, content)
		s.Differs(content, &checksum.Content{Policy: content.Policy})
	}
}

// review is one of an API server.
func (w *world) review(resource string, object, old []byte, manager, user string) []byte {
	request := &admissionv1.AdmissionRequest{UID: "1", Namespace: namespace, Name: "web", Operation: admissionv1.Create}
	request.Resource = metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
	if resource == "pods" {
		request.Resource.Group = ""
	}
	request.UserInfo.Username = user
	request.Object.Raw = object
	if old != nil {
		request.Operation, request.OldObject.Raw = admissionv1.Update, old
	}
	request.Options.Raw = []byte(`{"fieldManager":"` + manager + `"}`)
	return must(json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request}))
}

func post(h http.Handler, body []byte) {
	ctx := klog.NewContext(context.Background(), klog.Logger{})
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mutate?timeout=10s", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	if h.ServeHTTP(answer, r); answer.Code != http.StatusOK || strings.Contains(answer.Body.String(), "panic") {
		panic(answer.Body.String())
	}
}

func announce(corev1.ObjectReference, reason.Reason, string) {}

// handler is the webhook in a cluster in which nothing is but the workload, one revision of it,
// and what it names.
func (w *world) handler(object []byte) http.Handler {
	revision, err := workload.DecodeRevision(object)
	if err != nil {
		panic(err)
	}
	kind, _ := workload.Builtin().Find("apps", "deployments")
	stored, err := kind.Decode(object)
	if err != nil {
		panic(err)
	}
	c := cluster{w, revision, stored}
	return (&webhook.Handler{
		Kinds: workload.Builtin(), Policy: checksum.DefaultPolicy(), OwnNamespace: "configstamp", Dialects: []checksum.Dialect{checksum.Reloader, checksum.Wave},
		Namespaces: c, Sources: c, People: c, Own: c, Keys: c, Revisions: c, Pins: &pins.Pins{Snapshots: c, Revisions: c}, Report: announce,
		Metrics: webhook.NewMetrics(prometheus.NewRegistry()),
	}).Endpoint()
}

func (w *world) podHandler() http.Handler {
	registry := prometheus.NewRegistry()
	return (&pins.Pods{Archive: cluster{world: w}, Owners: cluster{world: w}, Metrics: pins.NewMetrics(registry, webhook.NewMetrics(registry).Refused), Report: announce}).Endpoint()
}

// cluster is what the webhook asks. It answers at once. Memory holds what was on record, but for
// the first source.
type cluster struct {
	*world
	revision *workload.Revision
	stored   *workload.Object
}

func (w *world) content(source checksum.Source) *checksum.Content { return w.contents[source] }

func (w cluster) Names(_ string, kind checksum.Kind) []string { return w.named(kind) }

func (w cluster) Cached(_ string, sources []checksum.Source) (checksum.Contents, error) {
	known := checksum.Contents{}
	for _, source := range sources {
		known[source] = w.held
	}
	if len(w.selections) > 0 {
		known[w.selections[0].Source] = &checksum.Content{}
	}
	return known, nil
}

func (w cluster) Written(string, checksum.Source) (written, created time.Time) {
	return time.Unix(9, 0), time.Unix(1, 0)
}

func (w cluster) Fresh(_ context.Context, _ string, must, beside []checksum.Source) (checksum.Contents, error) {
	fresh := checksum.Contents{}
	for _, sources := range [][]checksum.Source{must, beside} {
		for _, source := range sources {
			fresh[source] = w.contents[source]
		}
	}
	return fresh, nil
}

func (w cluster) Look(context.Context, string) (checksum.Namespace, error) {
	return checksum.Namespace{OptedIn: true}, nil
}
func (w cluster) Read(ctx context.Context, namespace string) (checksum.Namespace, error) {
	return w.Look(ctx, namespace)
}
func (w cluster) Ring() *checksum.Ring                                  { return w.ring }
func (w cluster) Refresh(context.Context, string) (found bool, _ error) { return false, nil }

func (w cluster) Of(context.Context, *workload.Kind, string, string, types.UID) ([]*workload.Revision, error) {
	return []*workload.Revision{w.revision}, nil
}

func (w cluster) HasPods(context.Context, string, string, *workload.Revision) (bool, error) {
	return true, nil
}

func (w cluster) Stored(context.Context, *workload.Kind, string, string) (*workload.Object, error) {
	return w.stored, nil
}

func (w cluster) Known(_, _ string, of checksum.Source) *checksum.Content { return w.contents[of] }

// EnsureAll can make no snapshot, but all that an undo names are there.
func (w cluster) EnsureAll(_ context.Context, _ string, names map[checksum.Source]string) map[checksum.Source]error {
	failed := map[checksum.Source]error{}
	for source, name := range names {
		if !strings.HasSuffix(name, madeBefore) {
			failed[source] = context.DeadlineExceeded
		}
	}
	return failed
}

func (w cluster) Content(_ context.Context, _, _ string, of checksum.Source) (*checksum.Content, error) {
	return w.contents[of], nil
}

func (w cluster) MadeAt(string, string) time.Time { return time.Unix(3, 0) }
