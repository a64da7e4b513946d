package main

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

// Where things are in the cluster of these tests.
const (
	ourWebhooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/configstamp"
	ourWarnings = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/configstamp"
	ourSlice    = "/apis/discovery.k8s.io/v1/namespaces/configstamp/endpointslices/configstamp-abcde"
	ourLease    = "/apis/coordination.k8s.io/v1/namespaces/configstamp/leases/configstamp-controller"
	ourSettings = "/api/v1/namespaces/configstamp/configmaps/configstamp-settings"
	shop        = "/api/v1/namespaces/shop"
	webDeploy   = "/apis/apps/v1/namespaces/shop/deployments/web"
	dbSet       = "/apis/apps/v1/namespaces/shop/statefulsets/db"
	webConfig   = "/api/v1/namespaces/shop/configmaps/web"
	webSecret   = "/api/v1/namespaces/shop/secrets/db"
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

// event is one of configstamp's own events.
func event(reason, last string) func(*testing.T, *fakecluster.Server) {
	return apply(`
apiVersion: v1
kind: Event
metadata: {name: configstamp.1, namespace: configstamp}
involvedObject: {kind: Namespace, namespace: configstamp, name: configstamp}
type: Warning
reason: ` + reason + `
message: "configrollouts.configstamp.dev is forbidden"
lastTimestamp: "` + last + `"
reportingComponent: configstamp`)
}

// annotated sets an annotation, and labelled a label.
func annotated(path, key, value string) func(*testing.T, *fakecluster.Server) {
	return set(path, value, "metadata", "annotations", key)
}

func labelled(path, key, value string) func(*testing.T, *fakecluster.Server) {
	return set(path, value, "metadata", "labels", key)
}

// Each check finds what it looks for, and names a command.
func TestDoctor_Finds(t *testing.T) {
	const warning, note = "warning: ", "note: "
	for name, test := range map[string]struct {
		changes []change
		want    []string // parts of one finding; none: nothing is found
	}{
		"nothing": {},

		"no webhook":            {[]change{remove(ourWebhooks), says()}, []string{"error: mutatingwebhookconfiguration/configstamp: it does not exist", "helm upgrade --install configstamp"}},
		"a webhook elsewhere":   {[]change{serviceIn("tools")}, []string{"error: mutatingwebhookconfiguration/configstamp: it does not exist", "installed in namespace tools", "doctor --configstamp-namespace tools"}},
		"no endpoint":           {[]change{set(ourSlice, []any{}, "endpoints"), says()}, []string{"error: service/configstamp in namespace configstamp: no webhook is ready", "kubectl get pods -n configstamp"}},
		"no ready endpoint":     {[]change{set(ourSlice, []any{map[string]any{"conditions": map[string]any{"ready": false}}}, "endpoints")}, []string{"error: service/configstamp in namespace configstamp: no webhook is ready"}},
		"no endpoint with Fail": {[]change{set(ourSlice, []any{}, "endpoints"), entry(func(e map[string]any) { e["failurePolicy"] = "Fail" })}, []string{"With failurePolicy Fail, workloads that are opted in cannot be created or changed"}},
		"one endpoint":          {[]change{set(ourSlice, []any{map[string]any{"addresses": []any{"10.0.0.7"}}}, "endpoints")}, []string{note + "service/configstamp in namespace configstamp: only one webhook is ready"}},
		"silence":               {[]change{says()}, []string{"error: mutatingwebhookconfiguration/configstamp: the webhook gave no answer to a dry run of deployment/web in namespace shop", "kubectl logs -n configstamp"}},
		"a deferred answer":     {[]change{says("configstamp: deferred: the present content of the sources could not be read in time; ask again")}, []string{warning + "deployment/web in namespace shop: the webhook answers deferred: the present content", "kubectl configstamp why deployment/web -n shop"}},
		"a lost key":            {[]change{says("configstamp: key-lost: a recorded checksum cannot be compared")}, []string{warning + "deployment/web in namespace shop: the webhook answers key-lost"}},
		"dry runs are refused":  {[]change{refuses(`admission webhook "policy.example.com" does not support dry run`)}, []string{warning + "deployment/web in namespace shop: the webhook cannot be asked: the dry run is refused: ", "--dry-run=server"}},
		"a webhook that fails":  {[]change{refuses(`failed calling webhook "namespace.configstamp.dev": no endpoints`)}, []string{warning + "deployment/web in namespace shop: the webhook cannot be asked: the dry run is refused: "}},

		"no caBundle":            {[]change{entry(func(e map[string]any) { delete(e["clientConfig"].(map[string]any), "caBundle") })}, []string{"error: mutatingwebhookconfiguration/configstamp: its entries have no certificate"}},
		"nonsense as a caBundle": {[]change{entry(func(e map[string]any) { e["clientConfig"].(map[string]any)["caBundle"] = "bm9uc2Vuc2U=" })}, []string{"error: mutatingwebhookconfiguration/configstamp: its entries have no certificate"}},
		"no caBundle, injected":  {[]change{annotated(ourWebhooks, "cert-manager.io/inject-ca-from", "configstamp/configstamp"), entry(func(e map[string]any) { delete(e["clientConfig"].(map[string]any), "caBundle") })}, []string{"error: mutatingwebhookconfiguration/configstamp: its entries have no certificate", "kubectl describe certificates -n configstamp"}},
		"no caBundle to warn":    {[]change{entriesOf(ourWarnings, func(e map[string]any) { delete(e["clientConfig"].(map[string]any), "caBundle") })}, []string{warning + "validatingwebhookconfiguration/configstamp: its entries have no certificate", "get no warning about what rolls out"}},

		"an expired authority":   {[]change{func(_ *testing.T, s *fakecluster.Server) { s.Now = time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC) }}, []string{"error: mutatingwebhookconfiguration/configstamp: the certificate authority in its caBundle expired", "kubectl logs -n configstamp"}},
		"an authority that ends": {[]change{func(_ *testing.T, s *fakecluster.Server) { s.Now = time.Date(2036, 11, 19, 0, 0, 0, 0, time.UTC) }}, []string{warning + "mutatingwebhookconfiguration/configstamp, validatingwebhookconfiguration/configstamp: the certificate authority in its caBundle expires in 14h"}},

		"no lease":           {[]change{remove(ourLease)}, []string{"error: lease/configstamp-controller in namespace configstamp: it does not exist"}},
		"no leader":          {[]change{set(ourLease, "", "spec", "holderIdentity")}, []string{"error: lease/configstamp-controller in namespace configstamp: no controller leads"}},
		"a stale lease":      {[]change{set(ourLease, "2026-11-22T02:20:00.000000Z", "spec", "renewTime")}, []string{"error: lease/configstamp-controller in namespace configstamp: its holder configstamp-7c9d-x2x9l has not renewed it for 40m"}},
		"refused reports":    {[]change{event("ReportRefused", "2026-11-22T01:40:00Z")}, []string{warning + "deployment/configstamp in namespace configstamp: ReportRefused at 2026-11-22T01:40:00Z: configrollouts"}},
		"an old refusal":     {[]change{event("ReportRefused", "2026-11-22T00:40:00Z")}, nil},
		"other events":       {[]change{event("RolloutHeld", "2026-11-22T02:40:00Z")}, nil},
		"no settings":        {[]change{remove(ourSettings)}, []string{note + "configmap/configstamp-settings in namespace configstamp: it does not exist"}},
		"everything is held": {[]change{set(ourSettings, map[string]any{"pause": "true"}, "data")}, []string{warning + "configmap/configstamp-settings in namespace configstamp: --pause holds every rollout"}},
		"nothing rolls":      {[]change{set(ourSettings, map[string]any{"mode": "observe"}, "data")}, []string{note + "configmap/configstamp-settings in namespace configstamp: --mode=observe"}},

		"an unreadable window":           {[]change{annotated(webDeploy, "configstamp.dev/window", "Mon 25:00-26:00 UTC")}, []string{warning + "deployment/web in namespace shop: configstamp.dev/window:", "kubectl edit deployment/web -n shop"}},
		"an unreadable interval":         {[]change{annotated(shop, "configstamp.dev/min-interval", "soon")}, []string{warning + "namespace/shop: configstamp.dev/min-interval on the Namespace:", "kubectl edit namespace/shop"}},
		"an unreadable source":           {[]change{annotated(webConfig, "configstamp.dev/ignore", "yes")}, []string{warning + "configmap/web in namespace shop: configstamp.dev/ignore:", "kubectl edit configmap/web -n shop"}},
		"a resume ahead of its time":     {[]change{annotated(webConfig, "configstamp.dev/resume", "2027-11-22T03:00:00Z"), set(webConfig, []any{map[string]any{"manager": "kubectl-annotate", "time": "2026-11-22T02:00:00Z", "fieldsV1": map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{"f:configstamp.dev/resume": map[string]any{}}}}}}, "metadata", "managedFields")}, []string{warning + "configmap/web in namespace shop: configstamp.dev/resume:"}},
		"an unreadable template":         {[]change{set(webDeploy, "nonsense", "spec", "template", "spec", "containers")}, []string{warning + "deployment/web in namespace shop: its pod template cannot be read"}},
		"inject=true":                    {[]change{labelled(webDeploy, "configstamp.dev/inject", "true")}, []string{warning + `deployment/web in namespace shop: its label configstamp.dev/inject="true" opts neither in nor out`, "kubectl label deployment/web -n shop --overwrite configstamp.dev/inject=enabled"}},
		"inject=true, all opted in":      {[]change{wholeCluster, labelled(shop, "configstamp.dev/inject", "true")}, []string{warning + `namespace/shop: its label configstamp.dev/inject="true" opts neither in nor out`, "kubectl label namespace/shop --overwrite configstamp.dev/inject=disabled"}},
		"inject as an annotation":        {[]change{annotated(shop, "configstamp.dev/inject", "enabled")}, []string{warning + "namespace/shop: configstamp.dev/inject is a label: as an annotation it has no effect", "kubectl annotate namespace/shop configstamp.dev/inject-"}},
		"a policy as a label":            {[]change{labelled(webDeploy, "configstamp.dev/pause", "true")}, []string{warning + "deployment/web in namespace shop: configstamp.dev/pause is an annotation: as a label it has no effect", "kubectl label deployment/web -n shop configstamp.dev/pause-"}},
		"a misspelt label":               {[]change{labelled(webDeploy, "config-stamp.dev/inject", "enabled")}, []string{warning + "deployment/web in namespace shop: configstamp knows no label config-stamp.dev/inject", "kubectl label deployment/web -n shop config-stamp.dev/inject-"}},
		"a misspelt annotation":          {[]change{annotated(webConfig, "configstamp.dev/igonre", "true")}, []string{warning + "configmap/web in namespace shop: configstamp knows no annotation configstamp.dev/igonre", "kubectl annotate configmap/web -n shop configstamp.dev/igonre-"}},
		"a pause on a ConfigMap":         {[]change{annotated(webConfig, "configstamp.dev/pause", "true")}, []string{warning + "configmap/web in namespace shop: configstamp.dev/pause has no effect on a source; it belongs on a workload or a Namespace"}},
		"ignore-keys on a workload":      {[]change{annotated(webDeploy, "configstamp.dev/ignore-keys", "*.md")}, []string{warning + "deployment/web in namespace shop: configstamp.dev/ignore-keys has no effect on a workload; it belongs on a source"}},
		"a setting on a template":        {[]change{set(webDeploy, "observe", "spec", "template", "metadata", "annotations", "configstamp.dev/mode")}, []string{warning + "deployment/web in namespace shop: configstamp.dev/mode has no effect on a pod template"}},
		"the label on a template":        {[]change{set(webDeploy, "enabled", "spec", "template", "metadata", "labels", "configstamp.dev/inject")}, []string{warning + "deployment/web in namespace shop: configstamp.dev/inject has no effect on a pod template", "kubectl edit deployment/web -n shop"}},
		"the label everywhere":           {[]change{set(webDeploy, "enabled", "spec", "template", "metadata", "labels", "configstamp.dev/inject"), labelled(webDeploy, "configstamp.dev/inject", "enabled")}, nil},
		"a pin while pins are off":       {[]change{annotated(webDeploy, "configstamp.dev/pin", "true")}, []string{warning + "deployment/web in namespace shop: configstamp.dev/pin has no effect, because pins are off", "--set pins.enabled=true"}},
		"a pin while pins are on":        {[]change{annotated(webDeploy, "configstamp.dev/pin", "true"), set(ourSettings, "true", "data", "pins")}, nil},
		"Reloader without its dialect":   {[]change{annotated(webDeploy, "reloader.stakater.com/auto", "true")}, []string{note + "deployment/web in namespace shop: its annotations for reloader do not count", "--set 'dialects={reloader}'"}},
		"Reloader with its dialect":      {[]change{annotated(webDeploy, "reloader.stakater.com/auto", "true"), set(ourSettings, "reloader", "data", "dialects")}, nil},
		"wave without its dialect":       {[]change{annotated(webDeploy, "wave.pusher.com/update-on-config-change", "true")}, []string{note + "deployment/web in namespace shop: its annotations for wave do not count"}},
		"what configstamp itself writes": {[]change{annotated(webDeploy, "configstamp.dev/baseline", "{}"), annotated(webDeploy, "configstamp.dev/declined", "{}"), annotated(webDeploy, "configstamp.dev/failed", "x"), annotated(webConfig, "configstamp.dev/of", "x"), annotated(webConfig, "configstamp.dev/made", "x")}, nil},

		"a pause that has ended":     {[]change{annotated(shop, "configstamp.dev/pause", "2026-11-20T03:00:00Z")}, []string{note + "namespace/shop: the pause ended at 2026-11-20T03:00:00Z", "kubectl annotate namespace/shop configstamp.dev/pause-"}},
		"a pause by order, ended":    {[]change{paused("2026-11-20T03:00:00Z"), annotated(webDeploy, "configstamp.dev/pause", "2026-11-20T03:00:00Z")}, []string{note + "deployment/web in namespace shop: the pause ended", "kubectl configstamp unpause deployment/web -n shop"}},
		"a pause by order":           {[]change{paused("true"), annotated(webDeploy, "configstamp.dev/pause", "true")}, nil},
		"a pause that was removed":   {[]change{paused("true")}, []string{warning + "deployment/web in namespace shop: the pause by jane at 2026-11-21T03:00:00Z was removed: configstamp.dev/pause is missing", "kubectl configstamp pause deployment/web -n shop"}},
		"a pause that was replaced":  {[]change{paused("true"), annotated(webDeploy, "configstamp.dev/pause", "false")}, []string{warning + "deployment/web in namespace shop: the pause by jane", `configstamp.dev/pause is "false" now`}},
		"an old pause, removed":      {[]change{paused("2026-11-20T03:00:00Z")}, nil},
		"no checksum":                {[]change{noStamps}, []string{warning + "deployment/web in namespace shop: it is opted in, but has no checksum", "kubectl patch deployment/web -n shop --type=merge --field-manager=configstamp-record -p '{}'"}},
		"no checksum, new":           {[]change{noStamps, set(webDeploy, "2026-11-22T02:59:30Z", "metadata", "creationTimestamp")}, nil},
		"no checksum, all opted in":  {[]change{noStamps, wholeCluster, set(shop, map[string]any{}, "metadata", "labels")}, []string{warning + "deployment/web in namespace shop: it is opted in, but has no checksum"}},
		"no checksum, opted out":     {[]change{noStamps, wholeCluster, labelled(shop, "configstamp.dev/inject", "disabled")}, []string{note + "namespace/shop: no workload in it is opted in"}},
		"no checksum, missing":       {[]change{noStamps, remove(webConfig)}, nil},
		"no checksum, not opted in":  {[]change{noStamps, labelled(webDeploy, "configstamp.dev/inject", "disabled")}, nil},
		"no checksum, nothing there": {[]change{noStamps, set(webConfig, map[string]any{"configstamp.dev/ignore": "true"}, "metadata", "annotations"), set(webSecret, map[string]any{"configstamp.dev/ignore": "true"}, "metadata", "annotations")}, nil},
		"refused pods":               {[]change{set(webDeploy, []any{map[string]any{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}}, "status", "conditions")}, []string{warning + "deployment/web in namespace shop: the API server refuses its pods", "kubectl get deployment/web -n shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := healthy(t)
			for _, change := range test.changes {
				change(t, server)
			}
			out, errOut, code := run(t, server, "doctor", "-o", "json")
			var answer struct{ Findings []diagnosis }
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatalf("%v: %s%s", err, out, errOut)
			}
			want := codeWrong
			if len(test.want) == 0 || strings.HasPrefix(test.want[0], note) {
				want = 0
			}
			if code != want || len(test.want) == 0 && len(answer.Findings) > 0 {
				t.Errorf("exit code %d, want %d:\n%s%s", code, want, out, errOut)
			}
			found := func(f diagnosis) bool {
				in := ""
				if f.Namespace != "" {
					in = " in namespace " + f.Namespace
				}
				line := string(f.Weight) + ": " + strings.Join(f.About, ", ") + in + ": " + f.Text + ": " + f.Remedy
				return !slices.ContainsFunc(test.want, func(part string) bool { return !strings.Contains(line, part) })
			}
			if len(test.want) > 0 && !slices.ContainsFunc(answer.Findings, found) {
				t.Errorf("want a finding with %q in:\n%s", test.want, out)
			}
			wantOverwrite(t, out)
			if strings.Contains(out, "never-shown") {
				t.Error("the content of a source was printed")
			}
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

func serviceIn(namespace string) func(*testing.T, *fakecluster.Server) {
	return entry(func(e map[string]any) {
		e["clientConfig"].(map[string]any)["service"].(map[string]any)["namespace"] = namespace
	})
}

// paused notes that the command pause wrote a value.
func paused(wrote string) func(*testing.T, *fakecluster.Server) {
	return annotated(webDeploy, "kubectl.configstamp.dev/paused-by", `{"wrote":"`+wrote+`","at":"2026-11-21T03:00:00Z","by":"jane"}`)
}

func wholeCluster(t *testing.T, s *fakecluster.Server) {
	set(ourSettings, "all", "data", "opt-in")(t, s)
}

func noStamps(t *testing.T, s *fakecluster.Server) {
	set(webDeploy, map[string]any{}, "spec", "template", "metadata", "annotations")(t, s)
}

// Several things at once, in every form.
func TestDoctor_Forms(t *testing.T) {
	golden(t, "doctor/well", healthy(t), "doctor")
	server := healthy(t)
	for _, change := range []func(*testing.T, *fakecluster.Server){
		remove(ourLease), annotated(shop, "configstamp.dev/pause", "2026-11-20T03:00:00Z"),
		annotated(webDeploy, "configstamp.dev/ignore-keys", "*.md"), annotated(dbSet, "configstamp.dev/ignore-keys", "*.md"),
	} {
		change(t, server)
	}
	golden(t, "doctor/forms-all", server, "doctor", "-A")
	golden(t, "doctor/forms-json", server, "doctor", "-o", "json")
	if _, errOut, code := run(t, server, "doctor", "-o", "name"); code != 1 || !strings.Contains(errOut, "want json") {
		t.Errorf("it ended with %d: %s", code, errOut)
	}
}

// Right after an installation nothing is opted in: that is no fault, and doctor says what to do next.
func TestDoctor_NothingIsOptedIn(t *testing.T) {
	bare := func() *fakecluster.Server {
		server := healthy(t)
		set(shop, map[string]any{}, "metadata", "labels")(t, server)
		says()(t, server)
		return server
	}
	golden(t, "doctor/opted-in-nothing", bare(), "doctor")
	golden(t, "doctor/opted-in-nothing-all", bare(), "doctor", "-A")
	for _, args := range [][]string{{"doctor", "-o", "json"}, {"doctor", "-A", "-o", "json"}} {
		out, _, _ := run(t, bare(), args...)
		wantOverwrite(t, out)
	}
	for _, args := range [][]string{{"doctor"}, {"doctor", "-A"}} {
		server := bare()
		server.Forbid = func(_, resource, _ string) bool { return resource == "deployments" }
		if out, _, code := run(t, server, args...); code != codeUnlooked || strings.Contains(out, "opted in") {
			t.Errorf("%v: where a kind of workloads is not listed, it ended with %d:\n%s", args, code, out)
		}
	}
}

// Which namespaces --namespaces lists is in the webhook configuration. Without the right to read that, it is not known.
func TestDoctor_ListedNamespaces(t *testing.T) {
	server := healthy(t)
	server.Everywhere = true
	for _, change := range []func(*testing.T, *fakecluster.Server){
		set(shop, map[string]any{}, "metadata", "labels"), noStamps,
		entry(func(e map[string]any) {
			e["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": "kubernetes.io/metadata.name", "operator": "In", "values": []any{"shop"}}}}
		}),
	} {
		change(t, server)
	}
	if out, _, code := run(t, server, "doctor"); code != codeWrong || !strings.Contains(out, "has no checksum") {
		t.Errorf("it ended with %d:\n%s", code, out)
	}
	server.Forbid = func(_, resource, _ string) bool { return strings.HasSuffix(resource, "webhookconfigurations") }
	if out, errOut, code := run(t, server, "doctor"); code != codeUnlooked || !strings.Contains(errOut, "webhook, certificate, dry run, records, pods: ") {
		t.Errorf("it ended with %d:\n%s%s", code, out, errOut)
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
