package deploy

import (
	"regexp"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Whoever may write an object has the API server evaluate our expressions of it. To go through
// the keys of a map takes it the square of their number, seconds for 20,000, and everybody waits:
// so it is asked first how many there are.
func TestNoExpressionGoesThroughManyKeys(t *testing.T) {
	through := regexp.MustCompile(`\.(exists|all|filter|map)\(key,`)
	bounded := regexp.MustCompile(`\.size\(\) (<=|>) [0-9]+`)
	seen := 0
	for about, values := range variants {
		t.Run(about, func(t *testing.T) {
			check := func(name, of, expression string) {
				if !through.MatchString(expression) {
					return
				}
				if seen++; !bounded.MatchString(expression) {
					t.Errorf("%s: %s goes through the keys of a map, however many they are:\n%s", name, of, expression)
				}
			}
			conditions := func(name string, all []admissionregistrationv1.MatchCondition) (few bool) {
				for _, condition := range all {
					check(name, condition.Name, condition.Expression)
					few = few || condition.Name == "few-keys" && bounded.MatchString(condition.Expression)
				}
				return few
			}
			objects := rendered(t, values...)
			for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](objects) {
				few := conditions(policy.Name, policy.Spec.MatchConditions)
				if few || strings.HasSuffix(policy.Name, "-certificate") { // of webhook configurations, which no tenant writes
					continue
				}
				for _, variable := range policy.Spec.Variables {
					check(policy.Name, variable.Name, variable.Expression)
				}
				for _, validation := range policy.Spec.Validations {
					check(policy.Name, "a validation", validation.Expression+validation.MessageExpression)
				}
			}
			for _, policy := range all[*admissionregistrationv1.MutatingAdmissionPolicy](objects) {
				if !conditions(policy.Name, policy.Spec.MatchConditions) {
					t.Errorf("%s looks at objects of many keys", policy.Name)
				}
			}
			for _, configuration := range all[*admissionregistrationv1.MutatingWebhookConfiguration](objects) {
				for _, webhook := range configuration.Webhooks {
					conditions(webhook.Name, webhook.MatchConditions)
				}
			}
			for _, configuration := range all[*admissionregistrationv1.ValidatingWebhookConfiguration](objects) {
				for _, webhook := range configuration.Webhooks {
					conditions(webhook.Name, webhook.MatchConditions)
				}
			}
		})
	}
	if seen == 0 {
		t.Error("none was looked at")
	}
}
