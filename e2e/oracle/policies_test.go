package oracle

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// What is installed holds expressions, which the API server compiles: by the rules of
// the oldest Kubernetes that the chart takes, too.
func TestExpressionsCompileOnTheOldestKubernetesOfTheChart(t *testing.T) {
	chart, err := os.ReadFile(filepath.Join("..", "..", "deploy", "chart", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	oldest := regexp.MustCompile(`(?m)^kubeVersion: ">=(\d+\.\d+)\.`).FindSubmatch(chart)
	if oldest == nil {
		t.Fatal("Chart.yaml says no kubeVersion")
	}
	compiled := 0
	for _, policy := range slices.Concat(policies(t, "everything.yaml"), policies(t, "namespaced.yaml"), policies(t, "pins.yaml")) {
		compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MustParseGeneric(string(oldest[1]))))
		if err != nil {
			t.Fatal(err)
		}
		check := func(result cel.CompilationResult) {
			t.Helper()
			compiled++
			if result.Error != nil {
				t.Errorf("%s: on Kubernetes %s: %v\n%s", policy.Name, oldest[1], result.Error, result.ExpressionAccessor.GetExpression())
			}
		}
		declared := cel.OptionalVariableDeclarations{HasAuthorizer: true}
		for _, variable := range policy.Spec.Variables {
			check(compiler.CompileAndStoreVariable(&validating.Variable{Name: variable.Name, Expression: variable.Expression}, declared, environment.NewExpressions))
		}
		for _, condition := range policy.Spec.MatchConditions {
			check(compiler.CompileCELExpression((*matchconditions.MatchCondition)(&condition), declared, environment.NewExpressions))
		}
		for _, validation := range policy.Spec.Validations {
			check(compiler.CompileCELExpression(&validating.ValidationCondition{Expression: validation.Expression}, declared, environment.NewExpressions))
			if validation.MessageExpression != "" {
				check(compiler.CompileCELExpression(&validating.MessageExpressionCondition{MessageExpression: validation.MessageExpression}, cel.OptionalVariableDeclarations{}, environment.NewExpressions))
			}
		}
	}
	if compiled < 20 {
		t.Errorf("only %d expressions were found", compiled)
	}
}

// policies are all that hold expressions in a manifest; the match conditions of
// webhooks count as a policy that has these alone.
func policies(t *testing.T, manifest string) []admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", manifest))
	if err != nil {
		t.Fatal(err)
	}
	var found []admissionregistrationv1.ValidatingAdmissionPolicy
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		var of metav1.TypeMeta
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		var hooks admissionregistrationv1.MutatingWebhookConfiguration
		if err := yaml.Unmarshal(document, &of); err != nil {
			t.Fatal(err)
		}
		switch of.Kind {
		case "ValidatingAdmissionPolicy":
			if err := yaml.Unmarshal(document, &policy); err != nil {
				t.Fatal(err)
			}
			found = append(found, policy)
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration": // what is read here is the same
			if err := yaml.Unmarshal(document, &hooks); err != nil {
				t.Fatal(err)
			}
			for _, hook := range hooks.Webhooks {
				policy.Name, policy.Spec.MatchConditions = hook.Name, hook.MatchConditions
				found = append(found, policy)
			}
		}
	}
}
