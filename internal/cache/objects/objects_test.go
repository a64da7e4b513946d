package objects_test

import (
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configstamp/configstamp/internal/cache/objects"
	"github.com/configstamp/configstamp/internal/cache/objects/front"
)

func TestObjectsComeAndGoWhole(t *testing.T) {
	client := fake.NewClientset()
	config := front.Serve(t, client)
	secrets, err := objects.New[*corev1.Secret](config, corev1.SchemeGroupVersion, corev1.AddToScheme, "secrets", "here")
	must(t, err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "a", Labels: map[string]string{"l": "1"}}, Data: map[string][]byte{"k": {0, 1}}, Type: corev1.SecretTypeOpaque}
	made, err := secrets.Create(t.Context(), secret)
	must(t, err)
	made.Data["k"] = []byte("other")
	_, err = secrets.Update(t.Context(), "a", made)
	must(t, err)
	_, err = secrets.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"l":"2"}}}`), "me")
	must(t, err)
	got, err := secrets.Get(t.Context(), "a")
	must(t, err)
	if string(got.Data["k"]) != "other" || got.Labels["l"] != "2" || got.Type != corev1.SecretTypeOpaque {
		t.Errorf("it holds %v", got)
	}
	if _, err := secrets.In("there").Get(t.Context(), "a"); !apierrors.IsNotFound(err) {
		t.Errorf("elsewhere: %v", err)
	}
}

func TestObjectsInNoNamespaceAndRefusals(t *testing.T) {
	client := fake.NewClientset(&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "ours"}})
	configurations, err := objects.New[*admissionv1.MutatingWebhookConfiguration](front.Serve(t, client), admissionv1.SchemeGroupVersion, admissionv1.AddToScheme, "mutatingwebhookconfigurations", "")
	must(t, err)
	if got, err := configurations.Get(t.Context(), "ours"); err != nil || got.Name != "ours" {
		t.Errorf("%v, %v", got, err)
	}
	client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "mutatingwebhookconfigurations"}, "ours", errors.New("no"))
	})
	if got, err := configurations.Patch(t.Context(), "ours", types.MergePatchType, []byte("{}"), "me"); !apierrors.IsForbidden(err) || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
