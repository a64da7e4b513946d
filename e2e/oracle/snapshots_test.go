package oracle

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

const digest = "-3f2a91c07d5e8b4416aa"

// snapshot is one of configmap/web, and changed.
func snapshot(changes ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	made := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web" + digest, Namespace: "shop", ResourceVersion: "1",
			Labels:      map[string]string{"configstamp.dev/snapshot": "true"},
			Annotations: map[string]string{"configstamp.dev/of": "configmap/web", "configstamp.dev/made": "2027-01-02T06:00:00Z"},
		},
		Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {1, 2}}, Immutable: new(true),
	}
	for _, change := range changes {
		change(made)
	}
	return made
}

type change = func(*corev1.ConfigMap)

func of(source, name string) change {
	return func(c *corev1.ConfigMap) { c.Name, c.Annotations["configstamp.dev/of"] = name, source }
}

func labelled(key, value string) change {
	return func(c *corev1.ConfigMap) { c.Labels[key] = value }
}

func annotated(key, value string) change {
	return func(c *corev1.ConfigMap) { c.Annotations[key] = value }
}

var (
	unmarked = func(c *corev1.ConfigMap) { c.Labels = nil }
	mutable  = func(c *corev1.ConfigMap) { c.Immutable = nil }
	owned    = func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }
)

// A token of ours makes and deletes snapshots, and touches no other ConfigMap.
func TestThePolicyHoldsOurAccountToSnapshots(t *testing.T) {
	const notOne = "configstamp: snapshot-forbidden: configstamp may create and delete its snapshots"
	const more = "configstamp: snapshot-forbidden: configstamp may create snapshots that have its own label"
	const elsewhere = "configstamp: snapshot-forbidden: configstamp may create snapshots where the Namespace"
	long := strings.Repeat("a", 253)
	plain := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}, Data: map[string]string{"a": "1"}}
	for name, c := range map[string]struct {
		was, is *corev1.ConfigMap
		refused string
	}{
		"one is made":                        {nil, snapshot(), ""},
		"one of a megabyte":                  {nil, snapshot(func(c *corev1.ConfigMap) { c.Data["a"] = strings.Repeat("x", 1<<20) }), ""},
		"of a name with dots":                {nil, snapshot(of("configmap/a.b-c", "a.b-c"+digest)), ""},
		"of a name of 232":                   {nil, snapshot(of("configmap/"+long[:232], long[:232]+digest)), ""},
		"of a long name":                     {nil, snapshot(of("configmap/"+long, long[:232]+digest)), ""},
		"of one that is cut at a dot":        {nil, snapshot(of("configmap/"+long[:229]+".-.b", long[:229]+digest)), ""},
		"an ordinary one is made":            {nil, plain, notOne},
		"without the label":                  {nil, snapshot(unmarked), notOne},
		"with another value of it":           {nil, snapshot(labelled("configstamp.dev/snapshot", "yes")), notOne},
		"without a source":                   {nil, snapshot(func(c *corev1.ConfigMap) { c.Annotations = nil }), notOne},
		"that can be changed":                {nil, snapshot(mutable), notOne},
		"of a Secret":                        {nil, snapshot(of("secret/web", "web"+digest)), notOne},
		"of another namespace":               {nil, snapshot(of("configmap/x/web", "web"+digest)), notOne},
		"of another source":                  {nil, snapshot(of("configmap/other", "web"+digest)), notOne},
		"of what it begins with":             {nil, snapshot(of("configmap/we", "web"+digest)), notOne},
		"of more than it names":              {nil, snapshot(of("configmap/web-app", "web"+digest)), notOne},
		"without a digest":                   {nil, snapshot(of("configmap/web", "web")), notOne},
		"with a digest that is short":        {nil, snapshot(of("configmap/web", "web"+digest[:20])), notOne},
		"with a digest that is none":         {nil, snapshot(of("configmap/web", "web"+digest[:20]+"g")), notOne},
		"with no name before the digest":     {nil, snapshot(of("configmap/web", digest[1:])), notOne},
		"of a long name, cut too early":      {nil, snapshot(of("configmap/"+long, long[:231]+digest)), notOne},
		"of a long name, cut after a dash":   {nil, snapshot(of("configmap/"+long[:231]+"-"+long[:5], long[:231]+"-"+digest)), notOne},
		"of a long name, another":            {nil, snapshot(of("configmap/"+long, long[:231]+"b"+digest)), notOne},
		"of itself":                          {nil, snapshot(of("configmap/"+long[:232]+digest, long[:232]+digest)), notOne},
		"with a label for somebody":          {nil, snapshot(labelled("grafana_dashboard", "1")), more},
		"with an annotation for somebody":    {nil, snapshot(annotated("argocd.argoproj.io/tracking-id", "x")), more},
		"with a mark of ours":                {nil, snapshot(annotated("configstamp.dev/unused-since", "x")), more},
		"with an owner":                      {nil, snapshot(owned), more},
		"with a finalizer":                   {nil, snapshot(func(c *corev1.ConfigMap) { c.Finalizers = []string{"a/b"} }), more},
		"in kube-system":                     {nil, snapshot(func(c *corev1.ConfigMap) { c.Namespace = "kube-system" }), elsewhere},
		"in our own namespace":               {nil, snapshot(func(c *corev1.ConfigMap) { c.Namespace = "configstamp" }), elsewhere},
		"nothing is changed":                 {snapshot(), snapshot(), notOne},
		"an annotation is added":             {snapshot(), snapshot(annotated("a", "b")), notOne},
		"its label goes":                     {snapshot(), snapshot(unmarked), notOne},
		"an ordinary one becomes one":        {snapshot(unmarked), snapshot(), notOne},
		"an ordinary one is changed":         {plain, snapshot(of("configmap/web", "web")), notOne},
		"one is deleted":                     {snapshot(), nil, ""},
		"one of an excluded namespace goes":  {snapshot(func(c *corev1.ConfigMap) { c.Namespace = "kube-system" }), nil, ""},
		"an ordinary one is deleted":         {plain, nil, notOne},
		"one that was restored is deleted":   {snapshot(of("configmap/web", "web")), nil, notOne},
		"one that is not ours is deleted":    {snapshot(unmarked), nil, notOne},
		"one that can be changed is deleted": {snapshot(mutable), nil, notOne},
	} {
		for _, kubernetes := range []string{"1.30", "1.37"} {
			if said := snapshotPolicy(t, "pins.yaml", kubernetes, optedIn)(c.was, c.is); !strings.HasPrefix(said, c.refused) || c.refused == "" && said != "" {
				t.Errorf("Kubernetes %s, %s: it says %q, want %q", kubernetes, name, said, c.refused)
			}
		}
	}
}

// What the Namespace says decides where one is made. Where one goes nobody asks.
func TestThePolicyHoldsSnapshotsToWhereSomebodyOptedIn(t *testing.T) {
	const label, pin = "configstamp.dev/inject", "configstamp.dev/pin"
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		may                 bool
	}{
		"nothing":                  {nil, nil, false},
		"opted in":                 {map[string]string{label: "enabled"}, nil, true},
		"opted out":                {map[string]string{label: "disabled"}, nil, false},
		"a label that says little": {map[string]string{label: "true"}, nil, false},
		"pins":                     {nil, map[string]string{pin: "true"}, true},
		"pins not":                 {nil, map[string]string{pin: "false"}, false},
		"pins not, opted in":       {map[string]string{label: "enabled"}, map[string]string{pin: "false"}, true},
		"in the wrong places":      {map[string]string{pin: "true"}, map[string]string{label: "enabled"}, false},
	} {
		asked := snapshotPolicy(t, "pins.yaml", "1.30", metav1.ObjectMeta{Labels: c.labels, Annotations: c.annotations})
		if said := asked(nil, snapshot()); (said == "") != c.may {
			t.Errorf("%s: it says %q", name, said)
		}
		if said := asked(snapshot(), nil); said != "" {
			t.Errorf("%s, one is deleted: it says %q", name, said)
		}
	}
}

// In namespaced mode the list decides, as it does for workloads.
func TestThePolicyHoldsOurAccountToSnapshotsInTheListedNamespaces(t *testing.T) {
	asked := snapshotPolicy(t, "namespaced.yaml", "1.30", metav1.ObjectMeta{})
	for namespace, may := range map[string]bool{"team-a": true, "team-b": true, "team-c": false, "kube-system": false} {
		if said := asked(nil, snapshot(func(c *corev1.ConfigMap) { c.Namespace = namespace })); (said == "") != may {
			t.Errorf("%s: it says %q", namespace, said)
		}
	}
}

// optedIn is a Namespace as most are where pins are used.
var optedIn = metav1.ObjectMeta{Labels: map[string]string{"configstamp.dev/inject": "enabled"}}

// snapshotPolicy asks the policy of a manifest about a write in a Namespace; "" is: it may be.
func snapshotPolicy(t *testing.T, manifest, kubernetes string, namespace metav1.ObjectMeta) func(was, is *corev1.ConfigMap) string {
	t.Helper()
	all := policies(t, manifest)
	at := slices.IndexFunc(all, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool {
		return p.Name == "configstamp-snapshots"
	})
	if at < 0 {
		t.Fatalf("there is no policy for snapshots in %s", manifest)
	}
	validator := validatorOf(t, all[at], kubernetes)
	return func(was, is *corev1.ConfigMap) string {
		attributes := configMapWrite(was, is)
		for _, decision := range validator.Validate(t.Context(), attributes.GetResource(), attributes, nil, &corev1.Namespace{ObjectMeta: namespace}, celconfig.RuntimeCELCostBudget, nil).Decisions {
			if decision.Action == validating.ActionDeny {
				return decision.Message // the API server answers with the first
			}
		}
		return ""
	}
}

func configMapWrite(was, is *corev1.ConfigMap) *admission.VersionedAttributes {
	kind, resource := corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithResource("configmaps")
	operation, one := admission.Update, is
	var before, after runtime.Object
	if was != nil {
		before = was
	} else {
		operation = admission.Create
	}
	if is != nil {
		after = is
	} else {
		operation, one = admission.Delete, was
	}
	return &admission.VersionedAttributes{
		Attributes:    admission.NewAttributesRecord(after, before, kind, one.Namespace, one.Name, resource, "", operation, nil, false, account("configstamp:configstamp")),
		VersionedKind: kind, VersionedObject: admission.NewLazyObject(after), VersionedOldObject: admission.NewLazyObject(before),
	}
}
