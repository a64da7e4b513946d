package oracle

import (
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	label     = "configstamp.dev/inject"
	notServed = "configstamp: opted-out: configstamp may change workloads that are opted in, and no others"
)

// stamping is an update that writes a stamp, and perhaps labels.
type stamping struct {
	kind        string            // a Deployment by default
	namespace   string            // "shop" by default
	labelled    string            // what the label of the Namespace says
	labels      map[string]string // of the workload, before
	adds        map[string]string // labels that the update adds
	annotations map[string]string // of the workload
	template    map[string]string // annotations of its pod template
}

func (s stamping) attributes() *admission.VersionedAttributes {
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	resource := kind.GroupVersion().WithResource("deployments")
	at := []string{"spec", "template", "metadata", "annotations"}
	if s.kind == "CronJob" {
		kind = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: s.kind}
		resource = kind.GroupVersion().WithResource("cronjobs")
		at = append([]string{"spec", "jobTemplate"}, at...)
	}
	object := func(labels, template map[string]string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(kind)
		u.SetName("web")
		u.SetNamespace(s.namespace)
		u.SetLabels(labels)
		u.SetAnnotations(s.annotations)
		_ = unstructured.SetNestedStringMap(u.Object, template, at...)
		return u
	}
	was, is := object(s.labels, s.template), object(merged(s.labels, s.adds), merged(s.template, map[string]string{"configmap.configstamp.dev/c": "v1:absent"}))
	account := &user.DefaultInfo{Name: "system:serviceaccount:configstamp:configstamp"}
	return &admission.VersionedAttributes{
		Attributes:    admission.NewAttributesRecord(is, was, kind, s.namespace, "web", resource, "", admission.Update, &metav1.UpdateOptions{}, false, account),
		VersionedKind: kind, VersionedObject: admission.NewLazyObject(is), VersionedOldObject: admission.NewLazyObject(was),
	}
}

func merged(one, other map[string]string) map[string]string {
	if len(one)+len(other) == 0 {
		return nil
	}
	result := maps.Clone(one)
	if result == nil {
		result = map[string]string{}
	}
	maps.Copy(result, other)
	return result
}

// A token of ours reaches what is opted in, whichever way it is, and nothing else:
// it cannot restart what is not.
func TestThePolicyHoldsOurAccountToWhatIsOptedIn(t *testing.T) {
	in, out := map[string]string{label: "enabled"}, map[string]string{label: "disabled"}
	reloader := func(value string) map[string]string { return map[string]string{"reloader.stakater.com/auto": value} }
	for manifest, cases := range map[string]map[string]struct {
		stamping
		may bool
	}{
		"everything.yaml": {
			"nobody has opted in":                           {},
			"the Namespace is":                              {stamping{labelled: "enabled"}, true},
			"the Namespace is, and the label is misspelt":   {stamping{labelled: "enabled", labels: map[string]string{label: "yes"}}, true},
			"the Namespace is, and the workload is not":     {stamping{labelled: "enabled", labels: out}, false},
			"the Namespace's label is misspelt":             {stamping{labelled: "enable"}, false},
			"the workload is":                               {stamping{labels: in}, true},
			"the workload is, in a Namespace that is not":   {stamping{labels: in, labelled: "disabled"}, true},
			"a CronJob is":                                  {stamping{labels: in, kind: "CronJob"}, true},
			"the update itself opts in":                     {stamping{adds: in}, false},
			"kube-system, whatever is labelled":             {stamping{namespace: "kube-system", labelled: "enabled", labels: in, annotations: reloader("true")}, false},
			"our own namespace, whatever is labelled":       {stamping{namespace: "configstamp", labelled: "enabled", labels: in}, false},
			"Reloader's annotation on the workload":         {stamping{annotations: reloader("true")}, true},
			"Reloader's annotation on the template":         {stamping{template: reloader("true")}, true},
			"Reloader's annotation on a CronJob's template": {stamping{template: reloader("true"), kind: "CronJob"}, true},
			"Reloader's for one kind":                       {stamping{annotations: map[string]string{"configmap.reloader.stakater.com/reload": "c"}}, true},
			"Reloader's annotation says no":                 {stamping{annotations: reloader("false")}, false},
			"Reloader's annotation, and the label says no":  {stamping{annotations: reloader("true"), labels: out}, false},
			"wave's annotation":                             {stamping{annotations: map[string]string{"wave.pusher.com/update-on-config-change": "true"}}, true},
			"somebody's annotation":                         {stamping{annotations: map[string]string{"example.com/auto": "true"}}, false},
		},
		"namespaced.yaml": {
			"a namespace of the list":                           {stamping{namespace: "team-a"}, true},
			"a namespace of the list, and the workload says no": {stamping{namespace: "team-b", labels: out}, false},
			"another namespace, whatever is labelled":           {stamping{namespace: "team-c", labelled: "enabled", labels: in}, false},
		},
	} {
		all := policies(t, manifest)
		policy := all[slices.IndexFunc(all, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == "configstamp" })]
		for _, kubernetes := range []string{"1.30", "1.37"} {
			validator := validatorOf(t, policy, kubernetes)
			for name, c := range cases {
				if c.namespace == "" {
					c.namespace = "shop"
				}
				attributes := c.attributes()
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
				if c.labelled != "" {
					namespace.Labels = map[string]string{label: c.labelled}
				}
				said := ""
				for _, decision := range validator.Validate(t.Context(), attributes.GetResource(), attributes, nil, namespace, celconfig.RuntimeCELCostBudget, nil).Decisions {
					if decision.Action == validating.ActionDeny && said == "" {
						said = decision.Message // the API server answers with the first
					}
				}
				if c.may && said != "" || !c.may && !strings.HasPrefix(said, notServed) {
					t.Errorf("%s, Kubernetes %s, %s: it says %q", manifest, kubernetes, name, said)
				}
			}
		}
	}
}

// validatorOf compiles a policy as the API server does.
func validatorOf(t *testing.T, policy admissionregistrationv1.ValidatingAdmissionPolicy, kubernetes string) validating.Validator {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MustParseGeneric(kubernetes)))
	if err != nil {
		t.Fatal(err)
	}
	declared := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	var variables []cel.NamedExpressionAccessor
	for _, variable := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: variable.Name, Expression: variable.Expression})
	}
	compiler.CompileAndStoreVariables(variables, declared, environment.StoredExpressions)
	var validations, messages []cel.ExpressionAccessor
	for _, validation := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: validation.Expression, Message: validation.Message, Reason: validation.Reason})
		var message cel.ExpressionAccessor
		if validation.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: validation.MessageExpression}
		}
		messages = append(messages, message)
	}
	condition := func(of []cel.ExpressionAccessor) cel.ConditionEvaluator {
		return compiler.CompileCondition(of, declared, environment.StoredExpressions)
	}
	return validating.NewValidator(condition(validations), nil, condition(nil), condition(messages), policy.Spec.FailurePolicy, nil)
}
