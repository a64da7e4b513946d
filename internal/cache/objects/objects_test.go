package objects_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
	"github.com/configstamp/configstamp/internal/cache/objects"
)

func newClient[T runtime.Object](t *testing.T, server *fakeapi.Server, resource, namespace string) *objects.Client[T] {
	t.Helper()
	client, err := objects.New[T](server.Config(), corev1.SchemeGroupVersion, corev1.AddToScheme, resource, namespace)
	must(t, err)
	return client
}

func TestObjectsComeAndGoWhole(t *testing.T) {
	secrets := newClient[*corev1.Secret](t, fakeapi.New(t), "secrets", "here")
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
	server := fakeapi.New(t)
	server.Put("namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ours"}})
	namespaces := newClient[*corev1.Namespace](t, server, "namespaces", "")
	if got, err := namespaces.Get(t.Context(), "ours"); err != nil || got.Name != "ours" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := newClient[*corev1.Secret](t, server, "namespaces", "").Get(t.Context(), "ours"); err == nil || got != nil {
		t.Errorf("another type: %v, %v", got, err)
	}
	server.Refuse("PATCH", fakeapi.ErrForbidden)
	if got, err := namespaces.Patch(t.Context(), "ours", types.MergePatchType, []byte("{}"), "me"); !apierrors.IsForbidden(err) || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
