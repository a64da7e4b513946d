package oracle

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

func person(groups ...string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: "somebody@example.com", Groups: append(groups, "system:authenticated")}
}

func account(name string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: "system:serviceaccount:" + name, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"}}
}

// write is one write of a ConfigMap or a Secret; nil is: there is none.
type write struct {
	was, is runtime.Object
	by      *user.DefaultInfo
}

func (w write) attributes() *admission.VersionedAttributes {
	attributes := &admission.VersionedAttributes{VersionedKind: corev1.SchemeGroupVersion.WithKind("ConfigMap")}
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	if _, secret := w.was.(*corev1.Secret); secret {
		attributes.VersionedKind.Kind, resource.Resource = "Secret", "secrets"
	}
	operation := admission.Delete
	attributes.VersionedOldObject = admission.NewLazyObject(w.was)
	if w.is != nil {
		operation = admission.Update
		attributes.VersionedObject = admission.NewLazyObject(w.is)
	}
	attributes.Attributes = admission.NewAttributesRecord(w.is, w.was, attributes.VersionedKind, "shop", "web", resource, "", operation, nil, false, w.by)
	return attributes
}

func configMap(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {1, 2}}}
	change(made)
	return made
}

func secret(change func(*corev1.Secret)) *corev1.Secret {
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Data: map[string][]byte{"a": {1}}, Type: corev1.SecretTypeOpaque}
	change(made)
	return made
}

// Who is told of the impact of an edit: whoever reads warnings, of edits that change content.
func TestImpactIsToldOfContentToWhoeverReadsWarnings(t *testing.T) {
	plain, empty := configMap(func(*corev1.ConfigMap) {}), &corev1.ConfigMap{}
	other := configMap(func(c *corev1.ConfigMap) { c.Data["a"] = "2" })
	key := secret(func(*corev1.Secret) {})
	release := secret(func(s *corev1.Secret) { s.Type = "helm.sh/release.v1" })
	for name, c := range map[string]struct {
		write
		asked bool
	}{
		"another value":           {write{plain, other, person()}, true},
		"a key more":              {write{plain, configMap(func(c *corev1.ConfigMap) { c.Data["c"] = "" }), person()}, true},
		"a key less":              {write{plain, configMap(func(c *corev1.ConfigMap) { delete(c.Data, "a") }), person()}, true},
		"other bytes":             {write{plain, configMap(func(c *corev1.ConfigMap) { c.BinaryData["b"] = []byte{1, 3} }), person()}, true},
		"all of it goes":          {write{plain, empty, person()}, true},
		"its first content":       {write{empty, plain, person()}, true},
		"empty, and empty":        {write{empty, configMap(func(c *corev1.ConfigMap) { c.Data, c.BinaryData = map[string]string{}, nil }), person()}, false},
		"a label":                 {write{plain, configMap(func(c *corev1.ConfigMap) { c.Labels = map[string]string{"a": "b"} }), person()}, false},
		"a deletion":              {write{plain, nil, person()}, true},
		"a deletion of nothing":   {write{empty, nil, person()}, true},
		"an admin":                {write{plain, other, person("system:masters")}, true},
		"nobody in particular":    {write{plain, other, &user.DefaultInfo{Name: "system:anonymous"}}, true},
		"a node":                  {write{plain, other, person("system:nodes")}, false},
		"an account":              {write{plain, other, account("ci:some")}, false},
		"an account that deletes": {write{plain, nil, account("kube-system:namespace-controller")}, false},
		"an account of the list":  {write{plain, other, account("ci:deployer")}, true},
		"the next of the list":    {write{plain, nil, account("ci:other")}, true},
		"of another namespace":    {write{plain, other, account("shop:deployer")}, false},

		"another Secret":       {write{key, secret(func(s *corev1.Secret) { s.Data["a"] = []byte{2} }), person()}, true},
		"a Secret's label":     {write{key, secret(func(s *corev1.Secret) { s.Labels = map[string]string{"a": "b"} }), person()}, false},
		"a Secret goes":        {write{key, nil, person()}, true},
		"an account's Secret":  {write{key, nil, account("ci:some")}, false},
		"a release of Helm":    {write{release, secret(func(s *corev1.Secret) { s.Type, s.Data["a"] = release.Type, nil }), person()}, false},
		"a release is deleted": {write{release, nil, person()}, false},
	} {
		for _, kubernetes := range []string{"1.30", "1.37"} {
			attributes := c.attributes()
			said := matcherOf(t, "everything.yaml", attributes.GetResource().Resource+".configstamp.dev", kubernetes).Match(t.Context(), attributes, nil, nil)
			if said.Error != nil || said.Matches != c.asked {
				t.Errorf("Kubernetes %s, %s: asked: %t, by %q, %v", kubernetes, name, said.Matches, said.FailedConditionName, said.Error)
			}
		}
	}
}

// matcherOf compiles the conditions of an entry of a manifest as the API server does. An error
// of theirs is one, whatever the failurePolicy is.
func matcherOf(t *testing.T, manifest, entry, kubernetes string) matchconditions.Matcher {
	t.Helper()
	all := policies(t, manifest)
	at := slices.IndexFunc(all, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == entry })
	if at < 0 {
		t.Fatalf("there is no entry %s", entry)
	}
	var expressions []cel.ExpressionAccessor
	for _, condition := range all[at].Spec.MatchConditions {
		expressions = append(expressions, (*matchconditions.MatchCondition)(&condition))
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(version.MustParseGeneric(kubernetes)))
	evaluator := compiler.CompileCondition(expressions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	fail := admissionregistrationv1.Fail
	return matchconditions.NewMatcher(evaluator, &fail, "webhook", "validating", entry)
}
