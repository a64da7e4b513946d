package deploy

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

func TestKeepStamps_WhereTheClusterHasSuchPolicies(t *testing.T) {
	t.Parallel()
	const has = "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
	for _, c := range []struct {
		values []string
		there  bool
	}{
		{nil, false},
		{[]string{has}, true},
		{[]string{"keepStamps=on"}, true},
		{[]string{"keepStamps=true"}, true}, // as YAML reads on
		{[]string{"keepStamps=off", has}, false},
		{[]string{"keepStamps=false", has}, false},
		{[]string{"keepStamps=null", has}, true}, // values of an earlier chart
		{[]string{"namespaces={a}", has}, true},
	} {
		objects := rendered(t, c.values...)
		policies, bindings := all[*admissionregistrationv1.MutatingAdmissionPolicy](objects), all[*admissionregistrationv1.MutatingAdmissionPolicyBinding](objects)
		if there := len(policies) == 1 && len(bindings) == 1 && bindings[0].Spec.PolicyName == policies[0].Name; there != c.there || len(policies) != len(bindings) {
			t.Errorf("%q: the policy is there: %t, want %t", c.values, there, c.there)
		}
	}
	if _, complaint := template(t, "keepStamps=sometimes"); !strings.Contains(complaint, "keepStamps") {
		t.Errorf("keepStamps: sometimes: %q", complaint)
	}
}

func TestKeepStamps_EveryKindAndAnnotation(t *testing.T) {
	t.Parallel()
	policy := only[*admissionregistrationv1.MutatingAdmissionPolicy](t, rendered(t, everything...))
	for _, kind := range workload.Builtin() {
		asked := slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
			return slices.Equal(rule.APIGroups, []string{kind.Group}) && slices.Contains(rule.Resources, kind.Resource)
		})
		if updated := !kind.CreateOnly || kind.Immutable; asked != updated {
			t.Errorf("%s: the policy is for it: %t, want %t", kind, asked, updated)
		}
	}
	text := ""
	for _, condition := range policy.Spec.MatchConditions {
		text += condition.Expression
	}
	for _, key := range checksum.OursOnWorkload() {
		if !strings.Contains(text, "'"+key+"'") {
			t.Errorf("the policy does not put %s back", key)
		}
	}
	for _, group := range []string{"serving.knative.dev", "example.com"} {
		if !strings.Contains(text, "'"+group+"'") {
			t.Errorf("the policy does not leave alone what objects of %s own", group)
		}
	}
}
