package oracle

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

type annotations = map[string]string

// update is an update of a Deployment in a Namespace that is opted in.
type update struct {
	kind       string      // another one
	namespace  annotations // labels of another Namespace, which is not opted in without them
	labels     annotations // of the workload, after the update
	owner      string      // apiVersion of its controller
	image      bool        // the update changes the image
	was, is    annotations // of the template
	of, by     annotations // of the workload itself, before and after
	want, wont annotations // what is put back: on the template, and on the workload
}

func (u *update) attributes() *admission.VersionedAttributes {
	kind, resource, template := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments", u.template()
	if u.kind != "" {
		kind, resource = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: u.kind}, strings.ToLower(u.kind)+"s"
	}
	object := func(own, ofTemplate annotations, image string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetGroupVersionKind(kind)
		o.SetName("web")
		o.SetNamespace("shop")
		o.SetAnnotations(own)
		_ = unstructured.SetNestedMap(o.Object, map[string]any{}, append(template, "metadata")...)
		if len(ofTemplate) > 0 {
			_ = unstructured.SetNestedStringMap(o.Object, ofTemplate, append(template, "metadata", "annotations")...)
		}
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"name": "app", "image": image}}, append(template, "spec", "containers")...)
		return o
	}
	was, is := object(u.of, u.was, "app:1"), object(u.by, u.is, "app:1")
	if u.image {
		is = object(u.by, u.is, "app:2")
	}
	is.SetLabels(u.labels)
	if u.owner != "" {
		controls := true
		is.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: u.owner, Kind: "K", Name: "n", UID: "u", Controller: &controls}})
	}
	return &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(is, was, kind, "shop", "web", kind.GroupVersion().WithResource(resource), "", admission.Update, &metav1.UpdateOptions{}, false,
			&user.DefaultInfo{Name: "operator"}),
		VersionedKind: kind, VersionedObject: admission.NewLazyObject(is), VersionedOldObject: admission.NewLazyObject(was),
	}
}

func (u *update) template() []string {
	if u.kind == "CronJob" {
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return []string{"spec", "template"}
}

func TestKeepStamps(t *testing.T) {
	const c, s, pins = "configmap.configstamp.dev/c", "secret.configstamp.dev/s", "configstamp.dev/pins"
	const baseline, declined = "configstamp.dev/baseline", "configstamp.dev/declined"
	stamps := annotations{c: "1", s: "2", pins: "{}"}
	many := func(number int) annotations {
		made := annotations{}
		for i := range number {
			made[fmt.Sprintf("configmap.configstamp.dev/c%d", i)] = "v1:" + strings.Repeat("0", 49)
		}
		return made
	}
	out := annotations{}
	for about, u := range map[string]update{
		"all are dropped":                        {was: stamps, want: stamps},
		"with another image":                     {was: stamps, image: true, want: stamps},
		"of a CronJob":                           {kind: "CronJob", was: stamps, want: stamps},
		"of a Job":                               {kind: "Job", was: stamps, want: stamps},
		"of a SecretProviderClass":               {was: annotations{"secretproviderclass.configstamp.dev/p": "3"}, want: annotations{"secretproviderclass.configstamp.dev/p": "3"}},
		"others stay as the update has them":     {was: merged(stamps, annotations{"a": "1", "b": "1"}), is: annotations{"a": "2"}, want: stamps},
		"one is dropped":                         {was: stamps, is: annotations{c: "1", pins: "{}"}, want: annotations{s: "2"}},
		"nothing is dropped":                     {was: stamps, is: stamps},
		"there was nothing":                      {was: annotations{"a": "1"}},
		"an undo of a roll of ours":              {was: stamps, is: annotations{c: "0", s: "2"}},
		"an undo to a revision without pins":     {was: stamps, is: annotations{c: "1", s: "2"}, image: true},
		"an undo to one that reads less":         {was: stamps, is: annotations{c: "1"}, image: true},
		"an undo to one that reads more":         {was: stamps, is: annotations{c: "1", "configmap.configstamp.dev/d": "1"}},
		"baseline and declined":                  {of: annotations{baseline: "{}", declined: "{}", "a": "1"}, wont: annotations{baseline: "{}", declined: "{}"}},
		"the baseline alone":                     {of: annotations{baseline: "{}", declined: "{}"}, by: annotations{declined: "1", "a": "1"}, wont: annotations{baseline: "{}"}},
		"the baseline of an undo":                {was: stamps, is: annotations{c: "0"}, of: annotations{baseline: "{}"}, wont: annotations{baseline: "{}"}},
		"settings of people":                     {of: annotations{"configstamp.dev/pause": "true", c: "1"}, was: annotations{"configstamp.dev/pause": "true"}},
		"the workload opts out":                  {was: stamps, of: annotations{baseline: "{}"}, labels: annotations{label: "disabled"}},
		"the workload alone opts in":             {was: stamps, namespace: out, labels: annotations{label: "enabled"}, want: stamps},
		"nobody has opted in":                    {was: stamps, namespace: out},
		"the Namespace opts out":                 {was: stamps, namespace: annotations{label: "disabled"}},
		"an operator owns it":                    {was: stamps, owner: "argoproj.io/v1beta1", want: stamps},
		"its owner rolls":                        {was: stamps, owner: "serving.knative.dev/v1"},
		"as many as are looked at":               {was: many(2900), want: many(2900)},
		"more than are looked at":                {was: many(3001)},
		"with ours they would be too large":      {was: stamps, is: annotations{"a": strings.Repeat("ä", 120<<10)}},
		"the workload's too large, these not":    {was: stamps, want: stamps, of: annotations{baseline: "{}"}, by: annotations{"a": strings.Repeat("ä", 120<<10)}},
		"with ours they are nearly as large":     {was: stamps, is: annotations{"a": strings.Repeat("ä", 120<<10-100)}, want: stamps},
		"more keys of others than are looked at": {was: stamps, is: others()},
	} {
		for _, kubernetes := range []string{"1.36", "1.37"} { // the first that has such policies, and that of the other tests
			if u.namespace == nil {
				u.namespace = annotations{label: "enabled"}
			}
			object := keeper(t, kubernetes)(&u)
			own, template := object.GetAnnotations(), annotations{}
			template, _, _ = unstructured.NestedStringMap(object.Object, append(u.template(), "metadata", "annotations")...)
			if !maps.Equal(template, merged(u.is, u.want)) || !maps.Equal(own, merged(u.by, u.wont)) {
				t.Errorf("Kubernetes %s, %s: %.300v and %.300v, want %.300v and %.300v", kubernetes, about, template, own, merged(u.is, u.want), merged(u.by, u.wont))
			}
		}
	}
}

func others() annotations {
	made := annotations{}
	for i := range 3001 {
		made[fmt.Sprint(i)] = ""
	}
	return made
}

// keeper compiles the policy as the API server does, and returns what it makes of an update.
func keeper(t *testing.T, kubernetes string) func(*update) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "keep-stamps.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	documents, policy := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))), admissionregistrationv1.MutatingAdmissionPolicy{}
	for policy.Kind != "MutatingAdmissionPolicy" {
		document, err := documents.Read()
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(document, &policy); err != nil {
			t.Fatal(err)
		}
	}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MustParseGeneric(kubernetes)))
	if err != nil {
		t.Fatal(err)
	}
	declared := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, variable := range policy.Spec.Variables {
		if result := compiler.CompileAndStoreVariable(&validating.Variable{Name: variable.Name, Expression: variable.Expression}, declared, environment.NewExpressions); result.Error != nil {
			t.Fatalf("Kubernetes %s: variable %s: %v", kubernetes, variable.Name, result.Error)
		}
	}
	var conditions []cel.ExpressionAccessor
	for _, condition := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&condition))
	}
	fail := admissionregistrationv1.Fail // whatever the policy has: an error is one
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, declared, environment.NewExpressions), &fail, "policy", "mutating", policy.Name)
	declared.HasPatchTypes = true
	patcher := patch.NewJSONPatcher(compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: policy.Spec.Mutations[0].JSONPatch.Expression}, declared, environment.NewExpressions))
	return func(u *update) *unstructured.Unstructured {
		t.Helper()
		attributes := u.attributes()
		asked := matcher.Match(t.Context(), attributes, nil, nil)
		if asked.Error != nil {
			t.Fatalf("Kubernetes %s: %v", kubernetes, asked.Error)
		}
		if !asked.Matches {
			return attributes.VersionedObject.Object().(*unstructured.Unstructured)
		}
		object, err := patcher.Patch(compiler.CreateContext(t.Context()), patch.Request{
			MatchedResource: attributes.GetResource(), VersionedAttributes: attributes, ObjectInterfaces: admission.NewObjectInterfacesFromScheme(runtime.NewScheme()),
			Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: u.namespace}},
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatalf("Kubernetes %s: %v", kubernetes, err)
		}
		return object.(*unstructured.Unstructured)
	}
}
