package faults

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
)

// User writes in one namespace, and notes which writes were his.
type User struct {
	Namespace string

	all    dynamic.Interface
	mu     sync.Mutex
	writes map[int64]noted
	denied []string
	signed int
	// removed are the snapshots that he has deleted.
	removed map[types.UID]bool
}

// webhookTimeout is the timeoutSeconds of the chart's webhooks.
const webhookTimeout = 3 * time.Second

// noted is a write, and when its request ended.
type noted struct {
	judge.Write
	ended time.Time
}

// NewUser makes a user of a namespace.
func NewUser(all dynamic.Interface, namespace string) *User {
	return &User{Namespace: namespace, all: all, writes: map[int64]noted{}, removed: map[types.UID]bool{}}
}

func (u *User) to(kind string) dynamic.ResourceInterface {
	if kind == "namespace" {
		return u.all.Resource(kinds()[kind])
	}
	return u.all.Resource(kinds()[kind]).Namespace(u.Namespace)
}

// errConflict is an API server's answer to a request that met others too often:
// nobody's fault, and nothing was written.
const tries = 5

// do sends a request, notes what it came to, and tells of an error that is no
// user's own fault.
func (u *User) do(write judge.Write, send func(ctx context.Context) (*unstructured.Unstructured, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var object *unstructured.Unstructured
	var err error
	for range tries {
		write.Began = time.Now()
		if object, err = send(ctx); !apierrors.IsConflict(err) {
			break
		}
	}
	ended := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case flooded(err):
		return errFlooded
	case apierrors.IsForbidden(err), err != nil && strings.Contains(err.Error(), "admission"):
		u.denied = append(u.denied, write.What+": "+err.Error())
	case apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		return nil // another of his own writes was first
	case write.Merged && apierrors.IsInvalid(err) && !strings.Contains(err.Error(), "annotations"):
		return nil // what he applies does not go together with what an undo owns
	case err == nil && object != nil:
		if _, known := u.writes[judge.VersionOf(object)]; !known {
			u.writes[judge.VersionOf(object)] = noted{write, ended}
		}
	}
	if err != nil {
		return fmt.Errorf("%s in %s: %w", write.What, u.Namespace, err)
	}
	return nil
}

// sign marks a write to an object, so that it changes something by which it is
// known, and no answer is taken for it that tells of somebody else's.
func (u *User) sign(write judge.Write, object *unstructured.Unstructured) judge.Write {
	write.Mark = u.mark()
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[judge.Signature] = write.Mark
	object.SetAnnotations(annotations)
	write.Sent = object
	return write
}

func (u *User) mark() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.signed++
	return strconv.Itoa(u.signed)
}

// Create makes an object.
func (u *User) Create(object *unstructured.Unstructured) error {
	object = object.DeepCopy()
	return u.do(u.sign(judge.Write{What: "create " + judge.Name(object), Defaulted: true}, object), func(ctx context.Context) (*unstructured.Unstructured, error) {
		return u.to(strings.ToLower(object.GetKind())).Create(ctx, object.DeepCopy(), metav1.CreateOptions{FieldManager: "user"})
	})
}

// Put writes a whole manifest in the place of what is there, as kubectl replace
// does: what it does not hold is gone.
func (u *User) Put(object *unstructured.Unstructured) error {
	object = object.DeepCopy()
	return u.do(u.sign(judge.Write{What: "put " + judge.Name(object), Defaulted: true}, object), func(ctx context.Context) (*unstructured.Unstructured, error) {
		return u.to(strings.ToLower(object.GetKind())).Update(ctx, object.DeepCopy(), metav1.UpdateOptions{FieldManager: "user"})
	})
}

// Apply is a server-side apply of a whole manifest.
func (u *User) Apply(object *unstructured.Unstructured) error {
	object = object.DeepCopy()
	return u.do(u.sign(judge.Write{What: "apply " + judge.Name(object), Defaulted: true, Merged: true}, object), func(ctx context.Context) (*unstructured.Unstructured, error) {
		return u.to(strings.ToLower(object.GetKind())).Apply(ctx, object.GetName(), object.DeepCopy(), metav1.ApplyOptions{FieldManager: "gitops", Force: true})
	})
}

// Patch sends a merge patch.
func (u *User) Patch(name, patch string) error {
	kind, bare, _ := strings.Cut(name, "/")
	mark := u.mark()
	signed, err := jsonpatch.MergeMergePatches([]byte(patch), []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, judge.Signature, mark)))
	if err != nil {
		return fmt.Errorf("signing a patch of %s: %w", name, err)
	}
	return u.do(judge.Write{What: "patch " + name + " " + patch, Patch: signed, Mark: mark}, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return u.to(kind).Patch(ctx, bare, types.MergePatchType, signed, metav1.PatchOptions{FieldManager: "user"})
	})
}

// Undo puts an older template back, stamps and all, as kubectl rollout undo does.
func (u *User) Undo(name string, template map[string]any) error {
	kind, _, _ := strings.Cut(name, "/")
	path := "/spec/template"
	if kind == "cronjob" {
		path = "/spec/jobTemplate/spec/template"
	}
	return u.undoTo(name, types.JSONPatchType, template, []any{map[string]any{"op": "replace", "path": path, "value": template}})
}

// Readmit is a person's rolling re-admission.
func (u *User) Readmit(name string) error {
	kind, bare, _ := strings.Cut(name, "/")
	return u.do(judge.Write{What: "re-admit " + name, Asked: true}, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return u.to(kind).Patch(ctx, bare, types.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldManager: "configstamp"})
	})
}

// Scale changes how many replicas a workload has beside the webhooks, as an autoscaler does.
func (u *User) Scale(name string, replicas int64) error {
	kind, bare, _ := strings.Cut(name, "/")
	patch := []byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	return u.do(judge.Write{What: "scale " + name, Patch: patch}, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return u.to(kind).Patch(ctx, bare, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	})
}

// Delete deletes an object.
func (u *User) Delete(name string) error {
	kind, bare, _ := strings.Cut(name, "/")
	return u.do(judge.Write{What: "delete " + name}, func(ctx context.Context) (*unstructured.Unstructured, error) {
		policy := metav1.DeletePropagationBackground
		return nil, u.to(kind).Delete(ctx, bare, metav1.DeleteOptions{PropagationPolicy: &policy})
	})
}

// Set makes data the whole content of a source, which is created if need be. A key of
// its own tells namespaces apart: tests that run beside each other edit sources of one
// name, and would share one change if their contents were equal.
func (u *User) Set(source string, data map[string]string) error {
	kind, name, _ := strings.Cut(source, "/")
	content := map[string]any{"NAMESPACE": judge.Marker + "-" + u.Namespace}
	for key, value := range data {
		content[key] = value
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": u.Namespace}, "data": content,
	}}
	if kind == "secret" {
		object.Object["kind"] = "Secret"
		delete(object.Object, "data")
		object.Object["stringData"] = content
	}
	return u.do(judge.Write{What: "set " + source}, func(ctx context.Context) (*unstructured.Unstructured, error) {
		if kind == "secret" { // stringData is added to what is there
			if old, err := u.to(kind).Get(ctx, name, metav1.GetOptions{}); err == nil {
				delete(old.Object, "data")
				old.Object["stringData"] = content
				return u.to(kind).Update(ctx, old, metav1.UpdateOptions{})
			}
		}
		stored, err := u.to(kind).Update(ctx, object.DeepCopy(), metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			stored, err = u.to(kind).Create(ctx, object.DeepCopy(), metav1.CreateOptions{})
		}
		return stored, err
	})
}

// Label opts the namespace in with "enabled", and out with anything else.
func (u *User) Label(value string) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, harness.InjectLabel, value)
	return u.do(judge.Write{What: "label " + value}, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return u.to("namespace").Patch(ctx, u.Namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	})
}

// Writes are what he did; unserved tells of a span of time in which a webhook
// may not have answered.
func (u *User) Writes(unserved func(from, to time.Time) bool) map[int64]judge.Write {
	u.mu.Lock()
	defer u.mu.Unlock()
	writes := map[int64]judge.Write{}
	for version, one := range u.writes {
		// One that took as long as the API server waits may have gone on unserved, on a
		// machine that stood still.
		one.Unserved = one.Unserved || one.ended.Sub(one.Began) >= webhookTimeout || unserved(one.Began, one.ended)
		writes[version] = one.Write
	}
	return writes
}

// Denied is an error when something of his was refused.
func (u *User) Denied() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.denied) == 0 {
		return nil
	}
	return errors.New(strings.Join(u.denied, "\n"))
}
