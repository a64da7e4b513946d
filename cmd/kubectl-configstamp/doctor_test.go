package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configstamp/configstamp/e2e/fakecluster"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/reason/reasontest"
)

// Where things are in the cluster of these tests.
const (
	ourWebhooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/configstamp"
	ourWarnings = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/configstamp"
	ourSlice    = "/apis/discovery.k8s.io/v1/namespaces/configstamp/endpointslices/configstamp-abcde"
	ourLease    = "/apis/coordination.k8s.io/v1/namespaces/configstamp/leases/configstamp-controller"
	ourKey      = "/api/v1/namespaces/configstamp/secrets/configstamp-key"
	ourSettings = "/api/v1/namespaces/configstamp/configmaps/configstamp-settings"
	ourCert     = "/apis/cert-manager.io/v1/namespaces/configstamp/certificates/configstamp"
	shop        = "/api/v1/namespaces/shop"
	webDeploy   = "/apis/apps/v1/namespaces/shop/deployments/web"
	webConfig   = "/api/v1/namespaces/shop/configmaps/web"
)

// healthy is a cluster in which nothing is wrong.
func healthy(t *testing.T) *fakecluster.Server {
	server := fakecluster.New(t, "testdata/installation.yaml", "testdata/doctor.yaml")
	server.Now = atThree()
	server.Dry = func(string, *unstructured.Unstructured) ([]string, error) { return []string{inStep}, nil }
	return server
}

// set changes fields of an object: each a path of words, with a value behind it.
func set(path string, value any, fields ...string) func(*testing.T, *fakecluster.Server) {
	return func(t *testing.T, s *fakecluster.Server) {
		object := s.Get(t, path)
		if err := unstructured.SetNestedField(object.Object, value, fields...); err != nil {
			t.Fatal(err)
		}
		s.Put(object)
	}
}

func remove(path string) func(*testing.T, *fakecluster.Server) {
	return func(t *testing.T, s *fakecluster.Server) { s.Delete(t, path) }
}

func apply(manifest string) func(*testing.T, *fakecluster.Server) {
	return func(t *testing.T, s *fakecluster.Server) { s.Apply(t, manifest) }
}

func says(warnings ...string) func(*testing.T, *fakecluster.Server) {
	return func(_ *testing.T, s *fakecluster.Server) {
		s.Dry = func(string, *unstructured.Unstructured) ([]string, error) { return warnings, nil }
	}
}

func refuses(text string) func(*testing.T, *fakecluster.Server) {
	return func(_ *testing.T, s *fakecluster.Server) {
		s.Dry = func(string, *unstructured.Unstructured) ([]string, error) { return nil, errors.New(text) }
	}
}

// entry changes both entries of our webhook configuration.
func entry(change func(map[string]any)) func(*testing.T, *fakecluster.Server) {
	return entriesOf(ourWebhooks, change)
}

func entriesOf(path string, change func(map[string]any)) func(*testing.T, *fakecluster.Server) {
	return func(t *testing.T, s *fakecluster.Server) {
		object := s.Get(t, path)
		for _, one := range object.Object["webhooks"].([]any) {
			change(one.(map[string]any))
		}
		s.Put(object)
	}
}

func event(reason, message string) func(*testing.T, *fakecluster.Server) {
	return apply(`
apiVersion: v1
kind: Event
metadata: {name: web.` + strings.ToLower(reason) + `, namespace: shop}
involvedObject: {kind: Deployment, namespace: shop, name: web}
type: Warning
reason: ` + reason + `
message: "` + message + `"
firstTimestamp: "2026-11-22T02:40:00Z"
lastTimestamp: "2026-11-22T02:40:00Z"
reportingComponent: configstamp`)
}

const otherDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NAME}
spec:
  replicas: 1
  template: {spec: {containers: [{name: c, image: "IMAGE", args: [ARGS]}]}}`

func peer(name, image, args string) func(*testing.T, *fakecluster.Server) {
	return apply(strings.NewReplacer("NAME", name, "IMAGE", image, "ARGS", args).Replace(otherDeployment))
}

func otherWebhook(name, service, again string) func(*testing.T, *fakecluster.Server) {
	return apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: ` + service + `}
webhooks:
- name: ` + name + `
  clientConfig: {caBundle: "", service: {namespace: ` + service + `, name: ` + service + `}}
  namespaceSelector: {matchLabels: {configstamp.dev/inject: enabled}}
  rules: [{apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"], operations: ["*"]}]
  reinvocationPolicy: ` + again)
}

// Each finding has its words, its weight and its remedy, and so has a cluster in which
// nothing is wrong.
func TestDoctor(t *testing.T) {
	type change = func(*testing.T, *fakecluster.Server)
	for name, changes := range map[string][]change{
		"healthy": nil,

		"server-old":            {func(_ *testing.T, s *fakecluster.Server) { s.Version = "1.28" }},
		"webhook-none":          {remove(ourWebhooks), says()},
		"webhook-not-installed": {remove(ourWebhooks), remove(ourLease), remove(ourKey), says()},
		"webhook-elsewhere": {entry(func(e map[string]any) {
			e["clientConfig"].(map[string]any)["service"].(map[string]any)["namespace"] = "tools"
		})},
		"webhook-no-endpoints":        {set(ourSlice, []any{}, "endpoints"), says()},
		"webhook-no-endpoints-fail":   {set(ourSlice, []any{}, "endpoints"), entry(func(e map[string]any) { e["failurePolicy"] = "Fail" }), refuses(`Internal error occurred: failed calling webhook "namespace.configstamp.dev": no endpoints available for service "configstamp"`)},
		"webhook-one-endpoint":        {set(ourSlice, []any{map[string]any{"addresses": []any{"10.0.0.7"}}}, "endpoints")},
		"webhook-silent":              {says()},
		"webhook-kind-left-out":       {entry(func(e map[string]any) { e["rules"] = e["rules"].([]any)[1:] }), says()},
		"webhook-deferred":            {says("configstamp: deferred: the present content of the sources could not be read in time; ask again")},
		"webhook-key-lost":            {says("configstamp: key-lost: a recorded checksum cannot be compared, because its key is lost or belongs to another installation; nothing would restart")},
		"webhook-dry-runs-refused":    {refuses(`admission webhook "policy.example.com" does not support dry run`)},
		"certificate-no-bundle":       {entry(func(e map[string]any) { delete(e["clientConfig"].(map[string]any), "caBundle") })},
		"certificate-bundle-nonsense": {entry(func(e map[string]any) { e["clientConfig"].(map[string]any)["caBundle"] = "bm9uc2Vuc2U=" })},
		"certificate-expired":         {set(ourCert, "2026-11-21T03:00:00Z", "status", "notAfter")},
		"certificate-expires-soon":    {set(ourCert, "2026-11-23T03:00:00Z", "status", "notAfter")},
		"certificate-not-ready":       {set(ourCert, []any{map[string]any{"type": "Ready", "status": "False", "message": "Issuing certificate as Secret does not exist"}}, "status", "conditions")},
		"impact-off":                  {remove(ourWarnings)},
		"impact-of-secrets":           {entriesOf(ourWarnings, func(e map[string]any) { delete(e, "namespaceSelector") })},
		"impact-no-bundle":            {entriesOf(ourWarnings, func(e map[string]any) { delete(e["clientConfig"].(map[string]any), "caBundle") })},
		"impact-bundle-nonsense":      {entriesOf(ourWarnings, func(e map[string]any) { e["clientConfig"].(map[string]any)["caBundle"] = "bm9uc2Vuc2U=" }), remove(ourCert)},
		"impact-no-endpoints":         {set(ourSlice, []any{map[string]any{"name": "https", "port": int64(8443)}}, "ports")},
		"impact-fails":                {entriesOf(ourWarnings, func(e map[string]any) { delete(e, "failurePolicy"); delete(e, "timeoutSeconds") })},
		"impact-of-another": {entriesOf(ourWarnings, func(e map[string]any) {
			e["clientConfig"].(map[string]any)["service"].(map[string]any)["namespace"] = "tools"
		})},
		"key-none":        {remove(ourKey)},
		"key-empty":       {set(ourKey, []any{map[string]any{"manager": "helm", "time": "2026-10-01T08:00:00Z", "fieldsV1": map[string]any{"f:metadata": map[string]any{}}}}, "metadata", "managedFields")},
		"leader-none":     {remove(ourLease)},
		"leader-gave-up":  {set(ourLease, "", "spec", "holderIdentity")},
		"leader-stale":    {set(ourLease, "2026-11-22T02:20:00.000000Z", "spec", "renewTime")},
		"pins":            {set(ourSettings, "true", "data", "pins"), podEntry(nil)},
		"pins-no-entry":   {set(ourSettings, "true", "data", "pins")},
		"pins-entry-off":  {set(ourSettings, "true", "data", "pins"), podEntry(selectsNothing)},
		"pins-off":        {podEntry(selectsNothing)},
		"pins-entry-left": {podEntry(nil)},
		"pins-fail":       {set(ourSettings, "true", "data", "pins"), podEntry(func(e map[string]any) { delete(e, "failurePolicy"); delete(e, "timeoutSeconds") })},
		"defaults-absent": {remove(ourSettings)},
		"defaults-held":   {set(ourSettings, map[string]any{"pause": "true", "mode": "observe"}, "data")},

		"unreadable": {set(webDeploy, "Mon 25:00-26:00 UTC", "metadata", "annotations", "configstamp.dev/window"), set(shop, "soon", "metadata", "annotations", "configstamp.dev/min-interval"), set(webConfig, "yes", "metadata", "annotations", "configstamp.dev/ignore"), says("configstamp: unreadable: a setting or the pod template cannot be read; nothing restarts until it is fixed")},
		"misplaced": {
			set(shop, "true", "metadata", "labels", "configstamp.dev/inject"), set(shop, "enabled", "metadata", "annotations", "configstamp.dev/inject"),
			set(webDeploy, "true", "metadata", "labels", "configstamp.dev/pause"), set(webDeploy, "*.md", "metadata", "annotations", "configstamp.dev/ignore-keys"),
			set(webDeploy, "true", "metadata", "annotations", "configstamp.dev/pin"), set(webDeploy, "observe", "spec", "template", "metadata", "annotations", "configstamp.dev/mode"),
			set(webConfig, "true", "metadata", "annotations", "configstamp.dev/pause"),
		},
		"pins-on":              {set(ourSettings, "true", "data", "pins"), podEntry(nil), set(webDeploy, "true", "metadata", "annotations", "configstamp.dev/pin")},
		"dialect-off":          {set(webDeploy, "true", "metadata", "annotations", "reloader.stakater.com/auto")},
		"dialect-off-but-runs": {set(webDeploy, "true", "metadata", "annotations", "reloader.stakater.com/auto"), peer("reloader", "ghcr.io/stakater/reloader:v1.4.0", "")},
		"dialect-on":           {set(ourSettings, "reloader", "data", "dialects"), set(webDeploy, "true", "metadata", "annotations", "reloader.stakater.com/auto")},
		"pause-over":           {set(shop, "2026-11-20T03:00:00Z", "metadata", "annotations", "configstamp.dev/pause")},
		"pause-forgotten":      {pausedSince("2026-11-01T03:00:00Z")},
		"pause-of-late":        {pausedSince("2026-11-20T03:00:00Z")},
		"pause-over-by-order":  {set(webDeploy, map[string]any{"configstamp.dev/pause": "2026-11-20T03:00:00Z", "kubectl.configstamp.dev/paused-by": `{"wrote":"2026-11-20T03:00:00Z"}`}, "metadata", "annotations")},
		"source-missing":       {remove(webConfig), says("configstamp: missing: a required source or key does not exist; nothing restarts until it does")},
		"source-key-missing":   {says("configstamp: missing: a required source or key does not exist; nothing restarts until it does", reasontest.Scramble(reason.MissingKey.Warning(reason.Values{Source: "configmap/web", Key: "MESSAGE"})))},
		"source-also-missing":  {set(webDeploy, "configmap/routes", "metadata", "annotations", "configstamp.dev/also")},
		"records-never":        {set(webDeploy, map[string]any{}, "spec", "template", "metadata", "annotations")},
		"records-taken":        {set(webDeploy, map[string]any{}, "spec", "template", "metadata", "annotations"), set(webDeploy, []any{map[string]any{"manager": "acme-operator", "time": "2026-11-22T02:00:00Z", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:template": map[string]any{}}}}}, "metadata", "managedFields"), apply(olderRevision)},
		"pods-refused":         {set(webDeploy, []any{map[string]any{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}}, "status", "conditions")},
		"others-reinvoked":     {otherWebhook("mesh.example.com", "mesh", "IfNeeded")},
		"others-never-again":   {otherWebhook("mesh.example.com", "mesh", "Never")},
		"events-taken-away":    {event("ChecksumsTakenAway", "acme-operator takes the checksums away again and again. Label it configstamp.dev/inject=disabled")},
		"events-blocked":       {event("RecordingBlocked", "another webhook would change spec.template.spec.containers along with it")},
		"events-of-no-concern": {event("RolloutHeld", "it waits for its turn")},
		"peer-beside":          {peer("reloader", "ghcr.io/stakater/reloader:v1.4.0", "")},
		"peer-both":            {peer("wave", "quay.io/wave-k8s/wave@sha256:00", ""), set(webDeploy, "true", "metadata", "annotations", "wave.pusher.com/update-on-config-change")},
		"peer-all":             {peer("reloader", "mirror.example.com/reloader", "--auto-reload-all=true")},
	} {
		t.Run(name, func(t *testing.T) {
			server := healthy(t)
			for _, change := range changes {
				change(t, server)
			}
			golden(t, "doctor/"+name, server, "doctor")
			out, _, _ := run(t, server, "doctor", "-o", "json")
			wantOverwrite(t, out)
		})
	}
}

// sets is a command that gives a label or an annotation a value.
var sets = regexp.MustCompile(`kubectl (label|annotate) [^"]*configstamp\.dev/[a-z-]+=`)

// wantOverwrite fails if advice would be refused where there is a value already.
func wantOverwrite(t *testing.T, advice string) {
	t.Helper()
	for _, command := range sets.FindAllString(advice, -1) {
		if !strings.Contains(command, "--overwrite") {
			t.Errorf("%q fails where there is a value already", command)
		}
	}
}

// podEntry adds the entry for Pods, as the chart has it, and changed.
func podEntry(change func(map[string]any)) func(*testing.T, *fakecluster.Server) {
	return func(t *testing.T, s *fakecluster.Server) {
		object := s.Get(t, ourWebhooks)
		all := object.Object["webhooks"].([]any)
		entry := runtime.DeepCopyJSON(all[0].(map[string]any))
		entry["name"], entry["timeoutSeconds"] = "pins.configstamp.dev", int64(1)
		entry["rules"] = []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"pods"}, "operations": []any{"CREATE"}}}
		if change != nil {
			change(entry)
		}
		object.Object["webhooks"] = append(all, entry)
		s.Put(object)
	}
}

func selectsNothing(e map[string]any) {
	nothing := map[string]any{"key": "kubernetes.io/metadata.name", "operator": "DoesNotExist"}
	e["namespaceSelector"] = map[string]any{"matchExpressions": []any{nothing}}
}

func pausedSince(at string) func(*testing.T, *fakecluster.Server) {
	return func(t *testing.T, s *fakecluster.Server) {
		set(webDeploy, "true", "metadata", "annotations", "configstamp.dev/pause")(t, s)
		set(webDeploy, []any{map[string]any{"manager": "kubectl-annotate", "time": at, "fieldsV1": map[string]any{
			"f:metadata": map[string]any{"f:annotations": map[string]any{"f:configstamp.dev/pause": map[string]any{}}}}}}, "metadata", "managedFields")(t, s)
	}
}

const olderRevision = `
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  namespace: shop
  labels: {app: web}
  annotations: {deployment.kubernetes.io/revision: "1"}
  creationTimestamp: "2026-10-01T08:00:00Z"
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: uid-of-web, controller: true}]
spec:
  template:
    metadata: {annotations: {configmap.configstamp.dev/web: "v1:aaaaaaaa:all:22222222222222222222222222222222"}}
    spec: {containers: [{name: web, image: "web:1"}]}`

// Several things at once, in every form.
func TestDoctor_Forms(t *testing.T) {
	server := healthy(t)
	for _, change := range []func(*testing.T, *fakecluster.Server){
		remove(ourLease), pausedSince("2026-11-01T03:00:00Z"), set(shop, "2026-11-20T03:00:00Z", "metadata", "annotations", "configstamp.dev/pause"),
	} {
		change(t, server)
	}
	golden(t, "doctor/forms-all", server, "doctor", "-A")
	golden(t, "doctor/forms-wide", server, "doctor", "-o", "wide")
	golden(t, "doctor/forms-json", server, "doctor", "-o", "json")
	golden(t, "doctor/forms-name", server, "doctor", "-o", "name")
}

// Right after an installation nothing is opted in: that is no fault, and doctor says what to do next.
func TestDoctor_NothingIsOptedIn(t *testing.T) {
	bare := func(changes ...func(*testing.T, *fakecluster.Server)) *fakecluster.Server {
		server := healthy(t)
		for _, change := range append(changes, set(shop, map[string]any{}, "metadata", "labels"), says()) {
			change(t, server)
		}
		return server
	}
	golden(t, "doctor/opted-in-nothing", bare(), "doctor")
	golden(t, "doctor/opted-in-nothing-all", bare(), "doctor", "-A")
	for _, args := range [][]string{{"doctor", "-o", "json"}, {"doctor", "-A", "-o", "json"}} {
		out, _, _ := run(t, bare(), args...)
		wantOverwrite(t, out)
	}
	golden(t, "doctor/opted-in-empty", bare(apply("{apiVersion: v1, kind: Namespace, metadata: {name: other, labels: {configstamp.dev/inject: enabled}}}")), "doctor", "-A")
	golden(t, "doctor/opted-in-never", bare(), "doctor", "-n", "configstamp")
	for _, args := range [][]string{{"doctor"}, {"doctor", "-A"}} {
		server := bare()
		server.Forbid = func(_, resource, _ string) bool { return resource == "deployments" }
		if out, _, code := run(t, server, args...); code != codeUnlooked || strings.Contains(out, "opted in") {
			t.Errorf("%v: where a kind of workloads is not listed, it ended with %d:\n%s", args, code, out)
		}
	}
}

// What cannot be looked at is never fine.
func TestDoctor_WithFewRights(t *testing.T) {
	for name, may := range map[string]func(verb, resource, namespace string) bool{
		// The ClusterRole view, as far as it matters here.
		"view": func(verb, resource, _ string) bool {
			return verb != "patch" && verb != "create" && resource != "secrets" && !strings.HasSuffix(resource, "webhookconfigurations") && !strings.Contains(resource, "role") && resource != "leases" && resource != "certificates"
		},
		"one-namespace": func(verb, resource, namespace string) bool {
			return namespace == "shop" && resource != "namespaces" || verb == "get" && resource == "configmaps"
		},
		"nothing": func(string, string, string) bool { return false },
	} {
		server := healthy(t)
		server.Forbid = func(verb, resource, namespace string) bool { return !may(verb, resource, namespace) }
		golden(t, "doctor/rights-of-"+name, server, "doctor")
	}
}

// No request of doctor's reads content, or changes anything.
func TestDoctor_ReadsNoContent(t *testing.T) {
	server := healthy(t)
	server.Intercept = func(resource, accept string) {
		if resource == "secrets" && !strings.Contains(accept, "as=PartialObjectMetadata") {
			t.Errorf("it asked for %s as %s", resource, accept)
		}
	}
	if _, errOut, code := run(t, server, "doctor", "-A"); code != 0 {
		t.Errorf("it ended with %d: %s", code, errOut)
	}
	for _, request := range server.Requests() {
		reads := strings.HasPrefix(request, "GET ") || strings.HasPrefix(request, "PATCH ") && strings.Contains(request, "dryRun=All") ||
			request == "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"
		if !reads {
			t.Errorf("it sent %s", request)
		}
	}
}
