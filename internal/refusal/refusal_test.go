package refusal

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const secret = "hunter2-S3CR3T"

func TestARefusalIsToldWithoutTheWordsOfWhoRefused(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	denial := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Reason: metav1.StatusReason("PASSWORD=" + secret), Message: `admission webhook "teams.example.com" denied the request: env PASSWORD=` + secret,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Field: "spec.template.spec.containers[0].env[0].value", Message: "it is " + secret}, {Field: secret}, {Field: "PASSWORD=" + secret},
		}}}}
	for want, err := range map[string]error{
		`admission webhook "teams.example.com" refused: status code 400, at spec.template.spec.containers[0].env[0].value`: denial,
		`rolling: PATCH deployments.apps shop/d: admission webhook "teams.example.com" refused: status code 400, at spec.template.spec.containers[0].env[0].value`: fmt.Errorf(
			"rolling: %w", fmt.Errorf("PATCH deployments.apps shop/d: %w", denial)),
		`admission webhook "mesh.example.com" could not be called: InternalError (500)`: apierrors.NewInternalError(errors.New(
			`failed calling webhook "mesh.example.com": failed to call webhook: Post "https://mesh.mesh.svc:443/": ` + secret)),
		`ValidatingAdmissionPolicy "no-env" refused: Forbidden (403)`: apierrors.NewForbidden(deployments, "d", errors.New(
			`ValidatingAdmissionPolicy 'no-env' with binding 'no-env-everywhere' denied request: `+secret)),
		`the API server refused: Invalid (422), at spec.template.spec.containers[0].image`: apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "d", field.ErrorList{
			field.Invalid(field.NewPath("spec", "template", "spec").Child("containers").Index(0).Child("image"), secret, "it may not be "+secret)}),
		`the right to patch deployments is missing: Forbidden (403)`: apierrors.NewForbidden(deployments, "d", errors.New(
			`User "system:serviceaccount:configstamp:configstamp" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`)),
		`the API server failed: InternalError (500)`: apierrors.NewInternalError(errors.New(
			`conversion webhook for example.com/v1, Kind=Engine failed: ` + secret)),
		// Of several answers the first is told, and no word of either.
		`the API server refused: Conflict (409)`: errors.Join(apierrors.NewConflict(deployments, "d", errors.New(secret)), denial),
	} {
		got := Plain(err)
		if got.Error() != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if strings.Contains(got.Error(), secret) {
			t.Errorf("it repeats what was said: %s", got)
		}
		if again := Plain(got).Error(); again != want {
			t.Errorf("once more: %s, want %s", again, want)
		}
	}
}

func TestAPlainErrorIsWhatItWas(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")
	got := fmt.Errorf("looking: %w", Plain(fmt.Errorf("GET: %w", gone)))
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(got) || !errors.Is(got, gone) || !errors.As(got, &status) || status.Status().Code != http.StatusNotFound {
		t.Errorf("%v is not what it was", got)
	}
	if Plain(nil) != nil {
		t.Error("no error is an error")
	}
	if away := errors.New("connection refused"); !errors.Is(Plain(away), away) || Plain(away).Error() != "connection refused" {
		t.Error("an error that is no answer is another one")
	}
}

func TestWhatIsTooLongIsNotRepeated(t *testing.T) {
	long := strings.Repeat("a", 254)
	for _, message := range []string{
		`admission webhook "` + long + `" denied the request: no`,
		`Internal error occurred: failed calling webhook "` + long + `": no`,
		`ValidatingAdmissionPolicy '` + long + `' with binding 'b' denied request: no`,
		`pods is forbidden: User "u" cannot get resource "` + long + `" in API group ""`,
	} {
		if said := Words(&metav1.Status{Message: message, Code: 403}); strings.Contains(said, "aaa") {
			t.Errorf("it repeats %s", said)
		}
		if said := Words(&metav1.Status{Message: strings.ReplaceAll(message, long, long[:253]), Code: 403}); !strings.Contains(said, long[:253]) {
			t.Errorf("it does not name who refused: %s", said)
		}
	}
	if IsField("spec." + strings.Repeat(long, 2)) {
		t.Error("a field of any length is repeated")
	}
}
