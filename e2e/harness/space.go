package harness

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// InjectLabel opts in, as users write it.
const InjectLabel = "configstamp.dev/inject"

// Space is a test's own namespace. Objects are named as kubectl takes them:
// deployment/web, configmap/web-message. Whatever fails ends the test.
type Space struct {
	Namespace string
	Run       *Run

	t       testing.TB
	dynamic dynamic.Interface
	heard   *warnings
}

// warnings are what the API server said beside its answers.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// Warnings returns those that the space's own requests (not kubectl's) were answered with since the last
// call, but for the one that says that the API server of a busy machine did not answer the webhook in time.
func (s *Space) Warnings() []string {
	s.heard.mu.Lock()
	defer s.heard.mu.Unlock()
	texts := slices.DeleteFunc(s.heard.texts, func(text string) bool {
		return strings.Contains(text, "could not check in time whether pods of this template already run")
	})
	s.heard.texts = nil
	return texts
}

// Space makes a namespace that is opted in.
func (r *Run) Space(t testing.TB) *Space {
	t.Helper()
	return r.space(t, map[string]string{InjectLabel: "enabled"})
}

// PlainSpace makes a namespace that is not opted in.
func (r *Run) PlainSpace(t testing.TB) *Space {
	t.Helper()
	return r.space(t, nil)
}

func (r *Run) space(t testing.TB, labels map[string]string) *Space {
	t.Helper()
	if r = r.Of(t); r.shares() {
		r.turn(t)
	}
	s := r.Existing(t, title(t)+"-"+rand.String(5))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace, Labels: labels}}
	_, err := r.Client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	Must(t, err)
	t.Cleanup(func() {
		if !kept() {
			_ = r.Client.CoreV1().Namespaces().Delete(context.Background(), s.Namespace, metav1.DeleteOptions{})
		}
	})
	return s
}

// Existing is a namespace that is there, and stays.
func (r *Run) Existing(t testing.TB, namespace string) *Space {
	t.Helper()
	r = r.Of(t)
	s := &Space{Namespace: namespace, Run: r, t: t, heard: &warnings{}}
	config := rest.CopyConfig(r.Config)
	config.WarningHandler = s.heard
	var err error
	s.dynamic, err = dynamic.NewForConfig(config)
	Must(t, err)
	return s
}

// WaitServiceAccount waits for what a Pod needs to be created.
func (s *Space) WaitServiceAccount() {
	s.t.Helper()
	s.Eventually("waiting for the default service account", func() error {
		_, err := s.TryGet("serviceaccount/default")
		return err
	})
}

// GetNamespaceLabel is the value of the label that opts the namespace in.
func (s *Space) GetNamespaceLabel() string {
	s.t.Helper()
	namespace, err := s.Run.Client.CoreV1().Namespaces().Get(context.Background(), s.Namespace, metav1.GetOptions{})
	Must(s.t, err)
	return namespace.Labels[InjectLabel]
}

// In gives the same namespace to a subtest.
func (s *Space) In(t testing.TB) *Space {
	return &Space{Namespace: s.Namespace, Run: s.Run, t: t, dynamic: s.dynamic, heard: s.heard}
}

// Label sets or (with "") removes the label that opts the namespace in.
func (s *Space) Label(value string) {
	s.t.Helper()
	var set any
	if value != "" {
		set = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{InjectLabel: set}}})
	Must(s.t, err)
	_, err = s.Run.Client.CoreV1().Namespaces().Patch(context.Background(), s.Namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	Must(s.t, err)
}

// TryKubectl runs kubectl in the namespace.
func (s *Space) TryKubectl(args ...string) Result {
	s.t.Helper()
	return s.kubectl("", nil, args...)
}

// Kubectl is TryKubectl for what must succeed.
func (s *Space) Kubectl(args ...string) Result {
	s.t.Helper()
	result := s.kubectl("", nil, args...)
	s.succeeded(result, args)
	return result
}

// KubectlEnv is Kubectl with environment variables, such as EDITOR=….
func (s *Space) KubectlEnv(environment []string, args ...string) Result {
	s.t.Helper()
	result := s.kubectl("", environment, args...)
	s.succeeded(result, args)
	return result
}

// KubectlInput is Kubectl with a manifest on standard input (-f -).
func (s *Space) KubectlInput(manifest string, args ...string) Result {
	s.t.Helper()
	result := s.kubectl(manifest, nil, args...)
	s.succeeded(result, args)
	return result
}

// TryKubectlInput is KubectlInput for what may fail.
func (s *Space) TryKubectlInput(manifest string, args ...string) Result {
	s.t.Helper()
	return s.kubectl(manifest, nil, args...)
}

// Apply is kubectl apply, client-side, of a manifest.
func (s *Space) Apply(manifest string) Result {
	s.t.Helper()
	return s.KubectlInput(manifest, "apply", "-f", "-")
}

func (s *Space) kubectl(stdin string, environment []string, args ...string) Result {
	s.t.Helper()
	for tries := 1; ; tries++ {
		result, err := s.Run.kubectl(stdin, environment, append([]string{"--namespace=" + s.Namespace}, args...)...)
		Must(s.t, err)
		// A controller wrote the object while the API server asked the webhooks:
		// it is not our doing, and a person would press the key again.
		if tries == 5 || result.Code == 0 || !strings.Contains(result.Stderr, "the object has been modified") {
			return result
		}
	}
}

func (s *Space) succeeded(result Result, args []string) {
	s.t.Helper()
	if result.Code != 0 {
		s.t.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), result.Code, result.Stdout, result.Stderr)
	}
}

// Create creates the objects of a manifest, without kubectl, and returns them as
// they were stored.
func (s *Space) Create(manifest string) []*unstructured.Unstructured {
	s.t.Helper()
	objects, err := parse(manifest)
	Must(s.t, err)
	for i, object := range objects {
		to, err := client(s.dynamic, object.GetKind(), s.Namespace)
		Must(s.t, err)
		objects[i], err = to.Create(context.Background(), object, metav1.CreateOptions{})
		Must(s.t, err)
	}
	return objects
}

// DryCreate is what the first object of a manifest would be stored as.
func (s *Space) DryCreate(manifest string) *unstructured.Unstructured {
	s.t.Helper()
	objects, err := parse(manifest)
	Must(s.t, err)
	to, err := client(s.dynamic, objects[0].GetKind(), s.Namespace)
	Must(s.t, err)
	object, err := to.Create(context.Background(), objects[0], metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	Must(s.t, err)
	return object
}

// Get reads an object.
func (s *Space) Get(name string) *unstructured.Unstructured {
	s.t.Helper()
	object, err := s.TryGet(name)
	Must(s.t, err)
	return object
}

// TryGet reads an object that may not be there.
func (s *Space) TryGet(name string) (*unstructured.Unstructured, error) {
	kind, name, _ := strings.Cut(name, "/")
	from, err := client(s.dynamic, kind, s.Namespace)
	if err != nil {
		return nil, err
	}
	return from.Get(context.Background(), name, metav1.GetOptions{})
}

// Patch sends a merge patch as somebody who is none of ours.
func (s *Space) Patch(name, patch string) *unstructured.Unstructured {
	s.t.Helper()
	kind, bare, _ := strings.Cut(name, "/")
	to, err := client(s.dynamic, kind, s.Namespace)
	Must(s.t, err)
	object, err := to.Patch(context.Background(), bare, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "e2e"})
	Must(s.t, err)
	return object
}

// Readmit sends the empty patch as a field manager: configstamp asks for a
// rolling re-admission, configstamp-record for a recording one.
func (s *Space) Readmit(name, manager string) *unstructured.Unstructured {
	s.t.Helper()
	kind, bare, _ := strings.Cut(name, "/")
	to, err := client(s.dynamic, kind, s.Namespace)
	Must(s.t, err)
	object, err := to.Patch(context.Background(), bare, types.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldManager: manager})
	Must(s.t, err)
	return object
}

// Put writes a whole object, as an operator does that builds it anew each time.
func (s *Space) Put(manifest string) *unstructured.Unstructured {
	s.t.Helper()
	return s.PutAs("e2e", manifest)
}

// PutAs is Put under the name of a field manager.
func (s *Space) PutAs(manager, manifest string) *unstructured.Unstructured {
	s.t.Helper()
	objects, err := parse(manifest)
	Must(s.t, err)
	to, err := client(s.dynamic, objects[0].GetKind(), s.Namespace)
	Must(s.t, err)
	object, err := to.Update(context.Background(), objects[0], metav1.UpdateOptions{FieldManager: manager})
	Must(s.t, err)
	return object
}

// Delete deletes an object.
func (s *Space) Delete(name string) {
	s.t.Helper()
	kind, bare, _ := strings.Cut(name, "/")
	from, err := client(s.dynamic, kind, s.Namespace)
	Must(s.t, err)
	Must(s.t, from.Delete(context.Background(), bare, metav1.DeleteOptions{}))
}

// Set makes data, as key, value, key, value…, the whole content of a ConfigMap
// or Secret, which is created if need be.
func (s *Space) Set(source string, data ...string) {
	s.t.Helper()
	kind, name, _ := strings.Cut(source, "/")
	field := "data"
	if kind == "secret" {
		field = "stringData"
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kindOf(kind), "metadata": map[string]any{"name": name, "namespace": s.Namespace}, field: pairs(data),
	}}
	to, err := client(s.dynamic, kind, s.Namespace)
	Must(s.t, err)
	_, err = to.Create(context.Background(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = to.Update(context.Background(), object, metav1.UpdateOptions{}) // no resourceVersion: unconditional
	}
	Must(s.t, err)
}

// Edit gives keys of a ConfigMap or Secret that is there other values, and
// leaves all else, such as its annotations, as it is.
func (s *Space) Edit(source string, data ...string) {
	s.t.Helper()
	field := "data"
	if strings.HasPrefix(source, "secret/") {
		field = "stringData"
	}
	s.patchMap(source, field, pairs(data))
}

// SetPolicy writes settings, by their names such as pause, on an object;
// "namespace" is the space's own.
func (s *Space) SetPolicy(name string, settings map[string]string) {
	s.t.Helper()
	annotations := map[string]any{}
	for setting, value := range settings {
		annotations["configstamp.dev/"+setting] = value
	}
	s.annotate(name, annotations)
}

// DropPolicy takes settings away, whatever their values are.
func (s *Space) DropPolicy(name string, settings map[string]string) {
	s.t.Helper()
	annotations := map[string]any{}
	for setting := range settings {
		annotations["configstamp.dev/"+setting] = nil
	}
	s.annotate(name, annotations)
}

func (s *Space) annotate(name string, annotations map[string]any) {
	s.t.Helper()
	if name == "namespace" {
		name += "/" + s.Namespace
	}
	s.patchMap(name, "metadata", map[string]any{"annotations": annotations})
}

func (s *Space) patchMap(name, field string, values map[string]any) {
	s.t.Helper()
	patch, err := json.Marshal(map[string]any{field: values})
	Must(s.t, err)
	s.Patch(name, string(patch))
}

// pairs makes a map of key, value, key, value….
func pairs(data []string) map[string]any {
	all := map[string]any{}
	for i := 0; i+1 < len(data); i += 2 {
		all[data[i]] = data[i+1]
	}
	return all
}
