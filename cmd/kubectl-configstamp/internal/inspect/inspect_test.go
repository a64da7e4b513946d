package inspect_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/e2e/fakecluster"
	"github.com/configstamp/configstamp/internal/workload"
)

const shop = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {configstamp.dev/inject: enabled}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: configstamp-settings, namespace: configstamp}
data: {settle: 5s, max-unsettled: 2%, restart-on: startup, ignore-sources: configmap/a, workload: "example.com/v1/gizmos=spec.template other.io/v1/things=spec.template", step: "off"}
---
apiVersion: example.com/v1
kind: Gizmo
metadata: {name: one, namespace: shop}
spec: {template: {spec: {containers: [{name: c, envFrom: [{secretRef: {name: db}}]}]}}}
`

// deployment is one that uses a ConfigMap, with a stamp of it.
func deployment(name, source, stamp, annotations string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: shop, annotations: {%s}}
spec:
  template:
    metadata: {annotations: {configmap.configstamp.dev/%s: "v1:aaaaaaaa:all:%s"}}
    spec: {containers: [{name: c, envFrom: [{configMapRef: {name: %s}}]}]}
`, name, annotations, source, strings.Repeat(stamp, 32), source)
}

func start(t *testing.T, manifests ...string) (*fakecluster.Server, *inspect.Cluster) {
	t.Helper()
	server := fakecluster.New(t)
	for _, manifest := range append([]string{shop}, manifests...) {
		server.Apply(t, manifest)
	}
	cluster, err := inspect.New(server.Config(), "configstamp")
	if err != nil {
		t.Fatal(err)
	}
	return server, cluster
}

func settings(t *testing.T, cluster *inspect.Cluster) *seen.Settings {
	t.Helper()
	settings, err := cluster.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return settings
}

func workloads(t *testing.T, cluster *inspect.Cluster, which inspect.Which) []*seen.Workload {
	t.Helper()
	all, err := cluster.Workloads(t.Context(), settings(t, cluster), which)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSettings(t *testing.T) {
	_, cluster := start(t)
	s := settings(t, cluster)
	if !s.Read || s.Limits.Settle != 5*time.Second || s.Limits.Unsettled.String() != "2%" || s.Limits.Step != 0 || s.Limits.Soak != 10*time.Second || s.Limits.FirstSoak != 30*time.Second {
		t.Errorf("read %+v", s)
	}
	if !slices.Equal(s.Policy.Uses, []checksum.Use{checksum.Startup}) || len(s.Policy.Ignored) != 1 || !slices.Equal(s.Excluded, []string{"kube-system"}) {
		t.Errorf("the policy is %+v, and %v are excluded", s.Policy, s.Excluded)
	}
	var names []string
	for _, kind := range s.Kinds {
		names = append(names, kind.Name)
	}
	if !slices.Contains(names, "Gizmo") || len(names) != len(workload.Builtin().With(workload.Known()...))-4+1 {
		t.Errorf("the kinds are %v: of the custom ones the cluster serves Gizmo alone", names)
	}
	if gaps := cluster.Gaps(); len(gaps) != 0 {
		t.Errorf("not seen: %v", gaps)
	}
}

// Where the settings cannot be read, the answer says so.
func TestSettings_UnreadOrUnreadable(t *testing.T) {
	server, cluster := start(t)
	server.Forbid = func(_, resource, _ string) bool { return resource == "configmaps" }
	if s := settings(t, cluster); s.Read || s.Limits.Settle != 2*time.Second || len(cluster.Gaps()) != 1 {
		t.Errorf("read: %t, %+v; not seen: %v", s.Read, s.Limits, cluster.Gaps())
	}
	server.Forbid = nil
	server.Apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: configstamp-settings, namespace: configstamp}\ndata: {settle: soon}\n")
	if _, err := cluster.Settings(t.Context()); err == nil || !strings.Contains(err.Error(), "settle") {
		t.Errorf("the error is %v", err)
	}
}

// Neither the content of a source nor a whole Secret is ever asked for.
func TestSources_MetadataAlone(t *testing.T) {
	server, cluster := start(t, `
apiVersion: v1
kind: Secret
metadata:
  name: db
  namespace: shop
  annotations: {configstamp.dev/ignore-keys: build, somebody: else}
  managedFields:
  - {manager: old, time: "2026-11-01T08:00:00Z", fieldsV1: {"f:data": {"f:a": {}}}}
  - {manager: labels, time: "2026-11-03T08:00:00Z", fieldsV1: {"f:metadata": {"f:labels": {}}}}
  - {manager: new, time: "2026-11-02T08:00:00Z", fieldsV1: {"f:data": {"f:b": {}}}}
data: {a: eA==}
`)
	server.Intercept = func(resource, accept string) {
		if resource == "secrets" && !strings.Contains(accept, "as=PartialObjectMetadata") {
			t.Errorf("a whole Secret was asked for: Accept: %s", accept)
		}
	}
	source, err := cluster.Source(t.Context(), "shop", checksum.Source{Kind: checksum.Secret, Name: "db"})
	if err != nil {
		t.Fatal(err)
	}
	if !source.Looked || !source.Exists || source.Edited().Manager != "new" || source.Policy == nil {
		t.Errorf("read %+v", source)
	}
	all, err := cluster.Sources(t.Context(), settings(t, cluster), "shop")
	if err != nil || len(all) != 1 {
		t.Errorf("read %v, error %v", all, err)
	}
	missing, err := cluster.Source(t.Context(), "shop", checksum.Source{Kind: checksum.Secret, Name: "no-such"})
	if err != nil || !missing.Looked || missing.Exists {
		t.Errorf("read %+v, error %v", missing, err)
	}
}

func TestAsk_OneQuestionForEqualRecords(t *testing.T) {
	server, cluster := start(t,
		deployment("a", "web", "1", ""), deployment("b", "web", "1", "somebody: else"), // one
		deployment("c", "web", "2", ""),                              // older content
		deployment("d", "web", "1", "configstamp.dev/mode: observe"), // another policy
		deployment("e", "other", "1", ""))                            // another source
	var asked []string
	var mu = make(chan struct{}, 1)
	server.Dry = func(_ string, object *unstructured.Unstructured) ([]string, error) {
		mu <- struct{}{}
		defer func() { <-mu }()
		asked = append(asked, object.GetName())
		return []string{"configstamp: in-step: of " + object.GetName()}, nil
	}
	all := workloads(t, cluster, inspect.Which{Namespace: "shop"})
	outcomes := cluster.Ask(t.Context(), all, nil)
	slices.Sort(asked)
	if !slices.Equal(asked, []string{"a", "c", "d", "e", "one"}) {
		t.Errorf("asked for %v", asked)
	}
	for _, w := range all {
		want := "of " + w.Name
		if w.Name == "b" {
			want = "of a"
		}
		if outcome := outcomes[w.Ref]; outcome.Code != seen.InStep || outcome.Sentence != want {
			t.Errorf("%s: %+v", w.Name, outcome)
		}
	}
}

// Silence, other words, a refusal: nothing of it is ever "in step".
func TestAsk_Unknown(t *testing.T) {
	for name, one := range map[string]struct {
		warnings []string
		err      error
		forbid   bool
		want     string
	}{
		"silence":      {nil, nil, false, "said nothing"},
		"other words":  {[]string{"in-step", "configstamp: in-step", "configstamp: in-stepp: x", "somebody: in-step: x"}, nil, false, "said nothing"},
		"no dry runs":  {nil, fmt.Errorf(`admission webhook "a.example.com" does not support dry run`), false, "another webhook refuses dry runs"},
		"other error":  {nil, fmt.Errorf("no such thing"), false, "no such thing"},
		"no right":     {[]string{"configstamp: in-step: x"}, nil, true, "no right to patch"},
		"later answer": {[]string{"configstamp: in-step: x", "configstamp: deferred: y"}, nil, false, "y"},
	} {
		t.Run(name, func(t *testing.T) {
			server, cluster := start(t, deployment("a", "web", "1", ""))
			server.Dry = func(string, *unstructured.Unstructured) ([]string, error) { return one.warnings, one.err }
			server.Forbid = func(verb, _, _ string) bool { return one.forbid && verb == "patch" }
			for ref, outcome := range cluster.Ask(t.Context(), workloads(t, cluster, inspect.Which{Namespace: "shop"}), nil) {
				if outcome.Code == seen.InStep || !strings.Contains(outcome.Sentence, one.want) {
					t.Errorf("%s: %+v, want %q", ref, outcome, one.want)
				}
			}
		})
	}
}

// A thousand users of one source are one question; a thousand sources are a thousand, no
// more than fifty of them at once.
func TestAsk_AThousand(t *testing.T) {
	server, cluster := start(t)
	for i := range 1000 {
		server.Apply(t, deployment(fmt.Sprintf("same-%d", i), "web", "1", ""))
		server.Apply(t, deployment(fmt.Sprintf("own-%d", i), fmt.Sprintf("source-%d", i), "1", ""))
	}
	var under, most, all atomic.Int64
	server.Dry = func(string, *unstructured.Unstructured) ([]string, error) {
		all.Add(1)
		now := under.Add(1)
		defer under.Add(-1)
		for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
		}
		time.Sleep(5 * time.Millisecond)
		return []string{"configstamp: in-step: x"}, nil
	}
	began := time.Now()
	found := workloads(t, cluster, inspect.Which{Namespace: "shop"})
	if len(found) != 2001 {
		t.Errorf("%d workloads, read in pages of 500", len(found))
	}
	var told atomic.Int64
	outcomes := cluster.Ask(t.Context(), found, func(done, of int) {
		if of != 1002 || int64(done) != told.Add(1) {
			t.Errorf("told of %d of %d", done, of)
		}
	})
	if all.Load() != 1002 || most.Load() > 50 || len(outcomes) != 2001 {
		t.Errorf("%d questions, %d at once, %d outcomes", all.Load(), most.Load(), len(outcomes))
	}
	t.Logf("took %s", time.Since(began))
}

func TestFindKind(t *testing.T) {
	for word, want := range map[string]string{
		"deploy": "deployments.apps", "Deployment": "deployments.apps", "deployments.apps": "deployments.apps", "deployment.v1.apps": "deployments.apps",
		"sts": "statefulsets.apps", "po": "pods", "rollout": "rollouts.argoproj.io", "cj": "cronjobs.batch",
	} {
		kind, err := inspect.FindKind(workload.Builtin().With(workload.Known()...), word)
		if err != nil || kind.String() != want {
			t.Errorf("%s is %v, error %v", word, kind, err)
		}
	}
	for _, word := range []string{"", "configmap", "deployments.example.com"} {
		if kind, err := inspect.FindKind(workload.Builtin().With(workload.Known()...), word); err == nil {
			t.Errorf("%q is %s", word, kind)
		}
	}
}

// What a controller has made is its controller's.
func TestWorkloads_CreateOnly(t *testing.T) {
	_, cluster := start(t, `
apiVersion: v1
kind: Pod
metadata: {name: bare, namespace: shop}
spec: {containers: [{name: c, envFrom: [{configMapRef: {name: web}}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: owned, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: x, uid: u, controller: true}]}
spec: {containers: [{name: c, envFrom: [{configMapRef: {name: web}}]}]}
`)
	var found []string
	for _, w := range workloads(t, cluster, inspect.Which{Namespace: "shop", CreateOnly: true}) {
		found = append(found, w.Text())
	}
	if !slices.Equal(found, []string{"pod/bare", "gizmo.example.com/one"}) {
		t.Errorf("found %v", found)
	}
}
