package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
)

// InjectLabel opts in, as users write it.
const InjectLabel = "configstamp.dev/inject"

// Space is a test's own namespace. Objects are named as kubectl takes them:
// deployment/web, configmap/web-message. Whatever fails ends the test.
type Space struct {
	Namespace string
	Run       *Run
	t         testing.TB
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
	s := &Space{Namespace: title(t) + "-" + rand.String(5), Run: r, t: t}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace, Labels: labels}}
	_, err := r.Client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	Must(t, err)
	if broken(ExtraRollouts) {
		go s.sabotage(t.Context())
	}
	t.Cleanup(func() {
		if !kept() {
			_ = r.Client.CoreV1().Namespaces().Delete(context.Background(), s.Namespace, metav1.DeleteOptions{})
		}
	})
	return s
}

// In gives the same namespace to a subtest.
func (s *Space) In(t testing.TB) *Space { return &Space{Namespace: s.Namespace, Run: s.Run, t: t} }

// Label sets or (with "") removes the label that opts the namespace in.
func (s *Space) Label(value string) {
	s.t.Helper()
	var set any
	if value != "" {
		set = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{InjectLabel: set}}})
	Must(s.t, err)
	_, err = s.Run.Client.CoreV1().Namespaces().Patch(s.t.Context(), s.Namespace, types.MergePatchType, patch, metav1.PatchOptions{})
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

// Apply is kubectl apply, client-side, of a manifest.
func (s *Space) Apply(manifest string) Result {
	s.t.Helper()
	return s.KubectlInput(manifest, "apply", "-f", "-")
}

func (s *Space) kubectl(stdin string, environment []string, args ...string) Result {
	s.t.Helper()
	result, err := s.Run.kubectl(stdin, environment, append([]string{"--namespace=" + s.Namespace}, args...)...)
	Must(s.t, err)
	return result
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
		to, err := client(s.Run.Dynamic, object.GetKind(), s.Namespace)
		Must(s.t, err)
		objects[i], err = to.Create(s.t.Context(), object, metav1.CreateOptions{})
		Must(s.t, err)
	}
	return objects
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
	from, err := client(s.Run.Dynamic, kind, s.Namespace)
	if err != nil {
		return nil, err
	}
	return from.Get(context.Background(), name, metav1.GetOptions{})
}

// Patch sends a merge patch as somebody who is none of ours.
func (s *Space) Patch(name, patch string) *unstructured.Unstructured {
	s.t.Helper()
	kind, bare, _ := strings.Cut(name, "/")
	to, err := client(s.Run.Dynamic, kind, s.Namespace)
	Must(s.t, err)
	object, err := to.Patch(s.t.Context(), bare, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "e2e"})
	Must(s.t, err)
	return object
}

// Delete deletes an object.
func (s *Space) Delete(name string) {
	s.t.Helper()
	kind, bare, _ := strings.Cut(name, "/")
	from, err := client(s.Run.Dynamic, kind, s.Namespace)
	Must(s.t, err)
	Must(s.t, from.Delete(s.t.Context(), bare, metav1.DeleteOptions{}))
}

// Set makes data, as key, value, key, value…, the whole content of a ConfigMap
// or Secret, which is created if need be.
func (s *Space) Set(source string, data ...string) {
	s.t.Helper()
	content := map[string]any{}
	for i := 0; i+1 < len(data); i += 2 {
		content[data[i]] = data[i+1]
	}
	kind, name, _ := strings.Cut(source, "/")
	field := "data"
	if kind == "secret" {
		field = "stringData"
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kindOf(kind), "metadata": map[string]any{"name": name, "namespace": s.Namespace}, field: content,
	}}
	to, err := client(s.Run.Dynamic, kind, s.Namespace)
	Must(s.t, err)
	_, err = to.Create(s.t.Context(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = to.Update(s.t.Context(), object, metav1.UpdateOptions{}) // no resourceVersion: unconditional
	}
	Must(s.t, err)
}

// Stamp is a stamp on the pod template, "" when there is none.
func (s *Space) Stamp(workload, source string) string {
	s.t.Helper()
	return Stamps(s.Get(workload))[StampKey(source)]
}

// templatePath is where an object keeps its pod template.
func templatePath(object *unstructured.Unstructured) []string {
	switch object.GetKind() {
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template"}
	case "Pod":
		return nil
	}
	return []string{"spec", "template"}
}

// TemplateAnnotations are those of an object's pod template.
func TemplateAnnotations(object *unstructured.Unstructured) map[string]string {
	annotations, _, _ := unstructured.NestedStringMap(object.Object, append(slices.Clone(templatePath(object)), "metadata", "annotations")...)
	return annotations
}

// Stamps are our annotations on an object's pod template.
func Stamps(object *unstructured.Unstructured) map[string]string {
	stamps := map[string]string{}
	for key, value := range TemplateAnnotations(object) {
		if strings.HasPrefix(key, "configmap.configstamp.dev/") || strings.HasPrefix(key, "secret.configstamp.dev/") {
			stamps[key] = value
		}
	}
	return stamps
}

// Baseline is what is on record on the workload's own metadata, by
// "configmap/web-message".
func Baseline(object *unstructured.Unstructured) map[string]string {
	baseline := map[string]string{}
	if text, ok := object.GetAnnotations()["configstamp.dev/baseline"]; ok {
		if err := json.Unmarshal([]byte(text), &baseline); err != nil {
			return map[string]string{"unreadable": text}
		}
	}
	return baseline
}

// Record is what is on record for a source: the baseline, else the stamp.
func (s *Space) Record(workload, source string) string {
	s.t.Helper()
	object := s.Get(workload)
	if value, ok := Baseline(object)[source]; ok {
		return value
	}
	return Stamps(object)[StampKey(source)]
}

// Digest is what a source's digest has to be now under the newest key: all keys
// of it, or those given. It is worked out by the harness, not by the product.
func (s *Space) Digest(source string, keys ...string) string {
	s.t.Helper()
	all, err := s.Run.Keys()
	Must(s.t, err)
	if len(all) == 0 {
		s.t.Fatal("there is no digest key")
	}
	return s.DigestUnder(all[len(all)-1].Material, source, keys...)
}

// DigestUnder is Digest under another key.
func (s *Space) DigestUnder(key []byte, source string, keys ...string) string {
	s.t.Helper()
	data, err := s.content(source)
	if apierrors.IsNotFound(err) {
		return "v1:absent"
	}
	Must(s.t, err)
	kind, name, _ := strings.Cut(source, "/")
	return Digest(key, kind, s.Namespace, name, data, keys)
}

func (s *Space) content(source string) (map[string][]byte, error) {
	kind, name, _ := strings.Cut(source, "/")
	if kind == "secret" {
		secret, err := s.Run.Client.CoreV1().Secrets(s.Namespace).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return secret.Data, nil
	}
	configMap, err := s.Run.Client.CoreV1().ConfigMaps(s.Namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	data := maps.Clone(configMap.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range configMap.Data {
		data[key] = []byte(value)
	}
	return data, nil
}

// sabotage is EnvBreak's ExtraRollouts.
func (s *Space) sabotage(ctx context.Context) {
	for ctx.Err() == nil {
		for _, kind := range []string{"deployment", "statefulset", "daemonset"} {
			all, err := client(s.Run.Dynamic, kind, s.Namespace)
			if err != nil {
				return
			}
			list, err := all.List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for i := range list.Items {
				patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"sabotage":"%d"}}}}}`, time.Now().UnixNano())
				_, _ = all.Patch(ctx, list.Items[i].GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
}
