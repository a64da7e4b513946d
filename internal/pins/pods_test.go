package pins_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/reason"
)

var webMessage = checksum.Source{Kind: checksum.ConfigMap, Name: "web-message"}

// podEntry serves Pods in a namespace with one snapshot, whose name it gives.
func podEntry(t testing.TB) (*podsEntry, *snapshots, string) {
	t.Helper()
	s := &snapshots{held: map[string]snapshot{}}
	name := s.put(webMessage, map[string]string{"MESSAGE": "hello"})
	registry := prometheus.NewRegistry()
	owner := fmt.Appendf(nil, `{"metadata":{"name":"web-app-5d4f","uid":"u-rs"},"spec":{"template":{"metadata":{"annotations":{%q:"{}"}}}}}`, checksum.PinsAnnotation)
	return &podsEntry{pins.Pods{Archive: s, Metrics: pins.NewMetrics(registry, func(int) {}), Owners: &owners{stored: owner}}, registry}, s, name
}

// podsEntry is the endpoint of Pods.
type podsEntry struct {
	pins.Pods
	registry *prometheus.Registry
}

func (p *podsEntry) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.Endpoint().ServeHTTP(w, r) }

// counted is how many Pods had a result.
func (p *podsEntry) counted(t testing.TB, result string) float64 {
	t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "configstamp_pod_pins_total" && metric.GetLabel()[0].GetValue() == result {
				return metric.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("nothing counts Pods that are %s", result)
	return 0
}

// podRequest creates a Pod; SNAPSHOT in the text is the name of the snapshot.
func podRequest(t testing.TB, snapshot, text string) *admissionv1.AdmissionRequest {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "SNAPSHOT", snapshot)))
	if err != nil {
		t.Fatal(err)
	}
	request := &admissionv1.AdmissionRequest{UID: "1", Namespace: "shop", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw}}
	request.Resource.Version, request.Resource.Resource = "v1", "pods"
	return request
}

const (
	podMetadata = `
metadata:
  generateName: web-app-5d4f-
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-app-5d4f, uid: u-rs, controller: true}]
  annotations:
    configstamp.dev/pins: '{"configmap/web-message":"SNAPSHOT startup,live"}'
`
	podSpec = `
spec:
  containers:
  - name: web
    image: web:1
    env: [{name: PLAIN, value: x}, {name: M, valueFrom: {configMapKeyRef: {name: web-message, key: MESSAGE}}}]
    volumeMounts: [{name: files, mountPath: /etc/web}]
  volumes: [{name: files, configMap: {name: web-message}}]
`
	pinnedByUs = `'{"configmap/web-message":"SNAPSHOT"}'`
)

func TestPods(t *testing.T) {
	sidecar := strings.Replace(podSpec, "  volumes:", "  - name: injected\n    env: [{name: NEW, valueFrom: {configMapKeyRef: {name: web-message, key: NEW}}}]\n  volumes:", 1)
	for about, test := range map[string]struct {
		pod     string
		change  func(*admissionv1.AdmissionRequest, *snapshots)
		outcome string
		patch   string // "op path value" by line
		warning string
	}{
		"a Pod of a pinned template": {podMetadata + podSpec, nil, "pinned", `
replace /spec/containers/0/env/1/valueFrom/configMapKeyRef/name SNAPSHOT
replace /spec/volumes/0/configMap/name SNAPSHOT
add /metadata/annotations/configstamp.dev~1pinned {"configmap/web-message":"SNAPSHOT"}`, ""},
		"a container that another webhook added": {podMetadata + sidecar, nil, "partly", `
replace /spec/containers/0/env/1/valueFrom/configMapKeyRef/name SNAPSHOT
replace /spec/volumes/0/configMap/name SNAPSHOT
add /metadata/annotations/configstamp.dev~1pinned {"configmap/web-message":"SNAPSHOT"}`,
			`configstamp: not-pinned: configmap/web-message: not pinned: a container names key "NEW", which its snapshot does not have; containers that start later read its content at that time`},
		"no snapshot": {podMetadata + podSpec, func(_ *admissionv1.AdmissionRequest, s *snapshots) { clear(s.held) }, "unpinned", ``,
			"configstamp: not-pinned: configmap/web-message: not pinned: its snapshot is missing, is not configstamp's, or could not be read in time; containers that start later read its content at that time"},
		"a snapshot that cannot be read": {podMetadata + podSpec, func(_ *admissionv1.AdmissionRequest, s *snapshots) { s.unread = errors.New("slow") }, "unpinned", ``,
			"configstamp: not-pinned: configmap/web-message: not pinned: its snapshot is missing, is not configstamp's, or could not be read in time; containers that start later read its content at that time"},
		"a mark that nobody made": {strings.Replace(podMetadata, "  annotations:", "  annotations:\n    configstamp.dev/pinned: made up", 1) + "\nspec: {containers: [{name: web}]}", nil, "pinned", `
remove /metadata/annotations/configstamp.dev~1pinned -`, ""},
		"pins that cannot be read": {strings.Replace(podMetadata, "SNAPSHOT startup,live", "secrets", 1) + podSpec, nil, "unpinned", ``,
			"configstamp: not-pinned: not pinned: reading annotation configstamp.dev/pins: want a snapshot of configmap/web-message and its uses, such as startup,live; containers that start later read its content at that time"},
		"a Pod that no controller owns": {strings.Replace(podMetadata, "controller: true", "controller: false", 1) + podSpec, nil, "not-served", ``, ""},
		"a Pod without pins":            {strings.Replace(podMetadata, "configstamp.dev/pins", "other", 1) + podSpec, nil, "not-served", ``, ""},
		"an update":                     {podMetadata + podSpec, func(r *admissionv1.AdmissionRequest, _ *snapshots) { r.Operation = admissionv1.Update }, "not-served", ``, ""},
		"another kind":                  {podMetadata + podSpec, func(r *admissionv1.AdmissionRequest, _ *snapshots) { r.Resource.Resource = "services" }, "not-served", ``, ""},
		"a subresource":                 {podMetadata + podSpec, func(r *admissionv1.AdmissionRequest, _ *snapshots) { r.SubResource = "eviction" }, "not-served", ``, ""},
		"garbage":                       {"[]", nil, "unpinned", ``, "configstamp: not-pinned: not pinned: reading a Pod: it does not have the form of its kind; containers that start later read its content at that time"},
	} {
		t.Run(about, func(t *testing.T) {
			pods, store, name := podEntry(t)
			request := podRequest(t, name, test.pod)
			if test.change != nil {
				test.change(request, store)
			}
			response := admit(silent(t), t, pods, request)
			if got := response.AuditAnnotations["outcome"]; got != test.outcome {
				t.Errorf("outcome %s, want %s", got, test.outcome)
			}
			if got := strings.Join(response.Warnings, "\n"); got != test.warning {
				t.Errorf("warnings %q, want %q", got, test.warning)
			}
			if diff := cmp.Diff(strings.TrimPrefix(strings.ReplaceAll(test.patch, "SNAPSHOT", name), "\n"), patchLines(t, response.Patch)); diff != "" {
				t.Errorf("patch (-want +got)\n%s", diff)
			}
			for _, result := range []string{"pinned", "partly", "unpinned"} {
				want := 0.0
				if result == test.outcome {
					want = 1
				}
				if got := pods.counted(t, result); got != want {
					t.Errorf("%s was counted %v times", result, got)
				}
			}
			request.Object.Raw = apply(t, request.Object.Raw, response.Patch)
			if again := admit(silent(t), t, pods, request); again.Patch != nil {
				t.Errorf("asked again, it answers %s", again.Patch)
			}
		})
	}
}

func patchLines(t testing.TB, patch []byte) string {
	t.Helper()
	var operations []operation
	if patch != nil {
		if err := json.Unmarshal(patch, &operations); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	for _, o := range operations {
		if o.Value == nil {
			o.Value = "-"
		}
		lines = append(lines, fmt.Sprint(o.Op, " ", o.Path, " ", o.Value))
	}
	return strings.Join(lines, "\n")
}

// Another webhook adds a container after us, and the API server asks us again.
func TestPods_AskedAgainAfterAnotherWebhook(t *testing.T) {
	pods, _, name := podEntry(t)
	request := podRequest(t, name, podMetadata+podSpec)
	first := apply(t, request.Object.Raw, admit(silent(t), t, pods, request).Patch)
	request.Object.Raw = []byte(strings.Replace(string(first), `"containers":[`, `"containers":[{"name":"first","envFrom":[{"configMapRef":{"name":"web-message","optional":true}}]},`, 1))
	second := admit(silent(t), t, pods, request)
	if want, got := "replace /spec/containers/0/envFrom/0/configMapRef/name "+name+"\nreplace /spec/containers/0/envFrom/0/configMapRef/optional false", patchLines(t, second.Patch); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if again := func() []byte {
		request.Object.Raw = apply(t, request.Object.Raw, second.Patch)
		return admit(silent(t), t, pods, request).Patch
	}(); again != nil {
		t.Errorf("the third time: %s", again)
	}
}

// Each source is read from its own snapshot; one that cannot be had leaves the other pinned.
func TestPods_TwoSources(t *testing.T) {
	pods, store, name := podEntry(t)
	limits := checksum.Source{Kind: checksum.ConfigMap, Name: "web-limits"}
	other := store.put(limits, map[string]string{"LIMIT": "7"})
	pod := strings.Replace(podMetadata, `live"}`, `live","configmap/web-limits":"OTHER startup"}`, 1) + strings.Replace(podSpec, "    env:", "    envFrom: [{configMapRef: {name: web-limits}}]\n    env:", 1)
	request := podRequest(t, name, strings.ReplaceAll(pod, "OTHER", other))
	want := strings.Join([]string{
		"replace /spec/containers/0/envFrom/0/configMapRef/name " + other,
		"replace /spec/containers/0/env/1/valueFrom/configMapKeyRef/name " + name, "replace /spec/volumes/0/configMap/name " + name,
		`add /metadata/annotations/configstamp.dev~1pinned {"configmap/web-limits":"` + other + `","configmap/web-message":"` + name + `"}`,
	}, "\n")
	if diff := cmp.Diff(want, patchLines(t, admit(silent(t), t, pods, request).Patch)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	delete(store.held, other)
	response := admit(silent(t), t, pods, request)
	if got := response.AuditAnnotations["outcome"]; got != "partly" || strings.Contains(string(response.Patch), "web-limits") || len(response.Warnings) != 1 {
		t.Errorf("%s: %s %q", got, response.Patch, response.Warnings)
	}
}

// Who creates the Pod is a controller and reads no warnings, so its owner has an event,
// once an hour.
func TestPods_TellTheOwner(t *testing.T) {
	pods, store, name := podEntry(t)
	clear(store.held)
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pods.Now = func() time.Time { return clock }
	var told []string
	pods.Report = func(about corev1.ObjectReference, why reason.Reason, sentence string) {
		told = append(told, fmt.Sprint(about.Kind, " ", about.Namespace, "/", about.Name, " ", about.UID, " ", why, ": ", sentence))
	}
	for range 3 {
		admit(silent(t), t, pods, podRequest(t, name, podMetadata+podSpec))
	}
	want := []string{"ReplicaSet shop/web-app-5d4f u-rs not-pinned: a new Pod: configmap/web-message: not pinned: its snapshot is missing, is not configstamp's, or could not be read in time; containers that start later read its content at that time"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	dry := podRequest(t, name, podMetadata+podSpec)
	yes := true
	dry.DryRun = &yes
	clock = clock.Add(2 * time.Hour)
	admit(silent(t), t, pods, dry)
	if len(told) != 1 {
		t.Errorf("a dry run was told of: %q", told)
	}
	admit(silent(t), t, pods, podRequest(t, name, podMetadata+podSpec))
	if len(told) != 2 {
		t.Errorf("told %d times after two hours", len(told))
	}
}

// Nobody is told of a Pod that may be invented: its owner is not there, is another one, has
// no pins, or cannot be read.
func TestPods_AnInventedOwnerIsNotToldOf(t *testing.T) {
	for about, change := range map[string]func(*admissionv1.AdmissionRequest, *owners){
		"it is not there": func(_ *admissionv1.AdmissionRequest, owner *owners) { owner.stored = nil },
		"it has another uid": func(r *admissionv1.AdmissionRequest, _ *owners) {
			r.Object.Raw = []byte(strings.ReplaceAll(string(r.Object.Raw), "u-rs", "u-invented"))
		},
		"it has no pins": func(_ *admissionv1.AdmissionRequest, owner *owners) {
			owner.stored = []byte(`{"metadata":{"name":"web-app-5d4f","uid":"u-rs"},"spec":{"template":{}}}`)
		},
		"it cannot be read": func(_ *admissionv1.AdmissionRequest, owner *owners) { owner.unread = errUnread },
		"it is of no kind that makes Pods": func(r *admissionv1.AdmissionRequest, _ *owners) {
			r.Object.Raw = []byte(strings.ReplaceAll(string(r.Object.Raw), `"ReplicaSet"`, `"Invention"`))
		},
	} {
		pods, store, name := podEntry(t)
		clear(store.held)
		told := 0
		pods.Report = func(corev1.ObjectReference, reason.Reason, string) { told++ }
		request := podRequest(t, name, podMetadata+podSpec)
		change(request, pods.Owners.(*owners))
		if response := admit(silent(t), t, pods, request); len(response.Warnings) != 1 || told != 0 {
			t.Errorf("%s: warned %q, told %d times", about, response.Warnings, told)
		}
	}
}

// A panic denies nothing, and ends no process: snapshots are read side by side.
func TestPods_Panic(t *testing.T) {
	for warnings, metadata := range map[int]string{
		1: podMetadata,
		2: strings.Replace(podMetadata, `live"}`, `live","configmap/web-limits":"web-limits-0123456789abcdef0123 startup"}`, 1),
	} {
		pods, _, name := podEntry(t)
		pods.Archive = nil
		pod := metadata + strings.Replace(podSpec, "    env:", "    envFrom: [{configMapRef: {name: web-limits}}]\n    env:", 1)
		response := admit(silent(t), t, pods, podRequest(t, name, pod))
		if response.Patch != nil || len(response.Warnings) != warnings || pods.counted(t, "unpinned") != 1 {
			t.Errorf("answered %+v, want %d warnings and no patch", response, warnings)
		}
	}
}

// FuzzPod: whatever a Pod is, the patch applies, changes nothing but names of references,
// their optional and our annotation, and leaves nothing to do when it is asked for again.
func FuzzPod(f *testing.F) {
	pods, _, name := podEntry(f)
	for _, text := range []string{
		podMetadata + podSpec, "{}", podMetadata + "\nspec: {containers: null}",
		podMetadata + strings.ReplaceAll(podSpec, "name: web-message", "name: web-message, optional: true"),
		podMetadata + strings.ReplaceAll(podSpec, "mountPath: /etc/web", "mountPath: /etc/web, subPath: ..data/NEW"),
		podMetadata + `
spec:
  initContainers:
  - {name: a, envFrom: [{configMapRef: {name: web-message, optional: true}}], volumeMounts: [{name: v, mountPath: /v}]}
  - {name: b, restartPolicy: Always, volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(A)}]}
  containers: [{name: c, env: [{name: N, valueFrom: {configMapKeyRef: {name: web-message, key: NEW, optional: true}}}]}]
  volumes: [{name: v, projected: {sources: [{configMap: {name: web-message, items: [{key: MESSAGE, path: m}]}}, {configMap: {name: other}}]}}]
`,
	} {
		f.Add(podRequest(f, name, text).Object.Raw)
	}
	ctx := silent(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		object, ok := rewritten(raw)
		if !ok {
			return
		}
		request := podRequest(t, name, "{}")
		request.Object.Raw = object
		response := admit(ctx, t, pods, request)
		if response.Patch == nil {
			return
		}
		result := apply(t, object, response.Patch)
		if before, after := unpinned(t, name, object), unpinned(t, name, result); !reflect.DeepEqual(before, after) {
			t.Fatalf("something else changed:\n%v\n%v", before, after)
		}
		request.Object.Raw = result
		if again := admit(ctx, t, pods, request); again.Patch != nil {
			t.Fatalf("asked again about\n%s\nit answers %s", result, again.Patch)
		}
	})
}

// unpinned is a Pod with the source's name in place of the snapshot's, and without what we
// may change: our mark, and optional beside such a name.
func unpinned(t testing.TB, snapshot string, raw []byte) any {
	t.Helper()
	var pod any
	if err := json.Unmarshal(raw, &pod); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(at any) {
		switch at := at.(type) {
		case []any:
			for _, one := range at {
				walk(one)
			}
		case map[string]any:
			if at["name"] == snapshot || at["name"] == webMessage.Name {
				at["name"] = webMessage.Name
				delete(at, "optional")
			}
			delete(at, checksum.PinnedAnnotation)
			for _, one := range at {
				walk(one)
			}
		}
	}
	walk(pod)
	return pod
}
