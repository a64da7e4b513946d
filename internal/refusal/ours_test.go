package refusal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/reason/reasontest"
)

func denial(by string) error {
	return fmt.Errorf("rolling: %w", Plain(apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "d", errors.New(by))))
}

// What our own policy means is read from code and fields, whatever the sentence.
func TestOurPolicyIsReadByItsCode(t *testing.T) {
	const ours, blocked = "ValidatingAdmissionPolicy 'cs' with binding 'cs' denied request: ", "configstamp: blocked: metadata.labels, spec.paused, x y, spec.template.: z"
	for name, test := range map[string]struct {
		err      error
		optedOut bool
		blocked  []string
	}{
		"opted out":                        {denial(ours + "configstamp: opted-out: x"), true, nil},
		"opted out, scrambled":             {denial(ours + reasontest.Scramble("configstamp: opted-out: x")), true, nil},
		"blocked":                          {denial(ours + blocked), false, []string{"metadata.labels", "spec.paused", "spec.template."}},
		"blocked, scrambled":               {denial(ours + reasontest.Scramble(blocked)), false, []string{"metadata.labels", "spec.paused", "spec.template."}},
		"something else":                   {denial(ours + "configstamp: refused: x"), false, nil},
		"another policy":                   {denial(ours + "no team"), false, nil},
		"a release without codes":          {denial(ours + "configstamp may change workloads that are opted in, and no others"), false, nil},
		"a webhook that quotes our policy": {denial(`admission webhook "a" denied the request: ` + ours + blocked), false, nil},
		"not forbidden":                    {errors.New(ours + blocked), false, nil},
		"nothing":                          {nil, false, nil},
	} {
		if got := OptedOut(test.err); got != test.optedOut {
			t.Errorf("%s: opted out: %t", name, got)
		}
		if got := Blocked(test.err); !slices.Equal(got, test.blocked) {
			t.Errorf("%s: blocked: %q", name, got)
		}
	}
}

// Every message of a policy for our own account has the form and a code of the table.
func TestOurPoliciesSpeakInCodes(t *testing.T) {
	const blocked = "'configstamp: blocked: ' + variables.foreign.join(', ') + ': "
	literal := regexp.MustCompile("'(configstamp: [^']*)'")
	known := func(code string) bool {
		return slices.ContainsFunc(reason.Rows(), func(row reason.Row) bool { return row.Code == code })
	}
	for _, file := range []string{"deploy/install.yaml", "deploy/install-self-managed.yaml", "e2e/testdata/pins.yaml", "e2e/testdata/namespaced.yaml"} {
		manifest, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, document := range strings.Split(string(manifest), "\n---\n") {
			var policy admissionregistrationv1.ValidatingAdmissionPolicy
			if err := yaml.Unmarshal([]byte(document), &policy); err != nil || policy.Kind != "ValidatingAdmissionPolicy" ||
				!slices.ContainsFunc(policy.Spec.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == "our-own-service-account" }) {
				continue
			}
			for _, validation := range policy.Spec.Validations {
				texts := []string{validation.Message}
				if validation.MessageExpression != "" {
					if !strings.Contains(validation.MessageExpression, blocked) {
						t.Errorf("%s: %s does not contain %s", file, validation.MessageExpression, blocked)
					}
					texts = nil
					for _, quoted := range literal.FindAllStringSubmatch(validation.MessageExpression, -1) {
						texts = append(texts, quoted[1]+"x")
					}
				}
				for _, text := range texts {
					if message, ok := reason.Parse(text); !ok || !known(message.Code) {
						t.Errorf("%s: policy %s says %q", file, policy.Name, text)
					}
					found++
				}
			}
		}
		if found < 6 {
			t.Errorf("%s has %d such messages", file, found)
		}
	}
}
