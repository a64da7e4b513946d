package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/configstamp/configstamp/e2e/faults/judge"
)

// errFlooded: a quota of the user's own keeps him from making a ConfigMap.
var errFlooded = errors.New("a quota has it refused")

func flooded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "quota")
}

// flood is the name of the quota.
const flood = "flood"

// beginToPin makes the user one who pins, in one of two ways, and has his workloads make Pods.
func (l *Life) beginToPin() error {
	l.pins, l.often = true, 2
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) { // without it no Pod is made
		_, err := l.Court.Run.Client.CoreV1().ServiceAccounts(l.Namespace).Get(context.Background(), "default", metav1.GetOptions{})
		if err == nil {
			break
		}
		if time.Since(begin) > 30*time.Second {
			return fmt.Errorf("waiting for the service account of %s: %w", l.Namespace, err)
		}
	}
	if l.pinsEach = l.random.IntN(3) == 0; l.pinsEach {
		return nil
	}
	return l.do(judge.Write{What: "pin"}, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return l.to("namespace").Patch(ctx, l.Namespace, types.MergePatchType, []byte(`{"metadata":{"annotations":{"configstamp.dev/pin":"true"}}}`), metav1.PatchOptions{})
	})
}

// pinned has a manifest pin, and make Pods.
func (p *plan) pinned(object *unstructured.Unstructured) {
	if p.pins {
		object.SetAnnotations(map[string]string{"configstamp.dev/pin": "true"})
	}
	if !p.scales {
		return
	}
	// There are no nodes: no Pod is ever ready, and none may wait for another.
	strategies := map[string]map[string]any{
		"Deployment":  {"revisionHistoryLimit": int64(1), "strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": "100%", "maxSurge": int64(0)}}},
		"StatefulSet": {"podManagementPolicy": "Parallel", "revisionHistoryLimit": int64(1)},
	}
	if more, known := strategies[p.kind]; known {
		more["replicas"] = p.replicas
		for field, value := range more {
			_ = unstructured.SetNestedField(object.Object, value, "spec", field)
		}
	}
}

// ofPins picks what only those do who pin.
func (l *Life) ofPins() (string, func() error) {
	p := l.anyPlan()
	name := p.ref()
	switch n := l.random.IntN(100); {
	case n < 30:
		which := l.random.IntN(16)
		return "undo as kubectl does " + name, func() error { return l.rollBack(p, which) }
	case n < 50:
		return "kill " + name, func() error { return l.kill(p.name) }
	case n < 65:
		p.replicas = int64(l.random.IntN(3)) // at none a rollout ends, and old revisions go
		return "scale " + name, func() error { return l.scale(p) }
	case n < 75:
		return "accept " + name, func() error { return l.Accept(name) }
	case n < 88:
		which := l.random.IntN(16)
		if l.random.IntN(2) == 0 {
			return "forge a snapshot of " + name, func() error { return l.forge(p, which) }
		}
		return "delete a snapshot", func() error {
			_, err := l.deleteSnapshot(which, func(string) bool { return true })
			return err
		}
	default:
		return "flood or not", l.flood
	}
}

// rollBack does what kubectl rollout undo --to-revision does with any of the revisions.
func (l *Life) rollBack(p *plan, which int) error {
	kind := map[string]string{"Deployment": "ReplicaSet", "StatefulSet": "ControllerRevision", "DaemonSet": "ControllerRevision"}[p.kind]
	revisions, err := l.revisions(kind, p)
	if err != nil || len(revisions) == 0 {
		return err
	}
	if len(revisions) > 1 {
		revisions = revisions[:len(revisions)-1] // the last is mostly that of now
	}
	revision := revisions[which%len(revisions)]
	if kind == "ReplicaSet" {
		template, _, _ := unstructured.NestedMap(revision.Object, "spec", "template")
		unstructured.RemoveNestedField(template, "metadata", "labels", "pod-template-hash")
		annotations := map[string]any{}
		for key, value := range revision.GetAnnotations() {
			if !strings.HasPrefix(key, "deployment.kubernetes.io/") {
				annotations[key] = value
			}
		}
		return l.undoTo(p.ref(), types.JSONPatchType, template, []any{
			map[string]any{"op": "replace", "path": "/spec/template", "value": template},
			map[string]any{"op": "replace", "path": "/metadata/annotations", "value": annotations},
		})
	}
	data, _, _ := unstructured.NestedMap(revision.Object, "data")
	template, _, _ := unstructured.NestedMap(data, "spec", "template")
	return l.undoTo(p.ref(), types.StrategicMergePatchType, template, data)
}

// revisions are those that the cluster keeps of a workload, as the Witness knows them.
func (l *Life) revisions(kind string, p *plan) (found []*unstructured.Unstructured, err error) {
	events, _, err := l.Court.Witness.Events(l.Namespace)
	last := map[string]judge.Event{}
	var order []string
	for _, event := range events {
		if owner := metav1.GetControllerOf(event.Object); event.Object.GetKind() == kind && owner != nil && owner.Name == p.name && owner.Kind == p.kind {
			if _, known := last[event.Object.GetName()]; !known {
				order = append(order, event.Object.GetName())
			}
			last[event.Object.GetName()] = event
		}
	}
	for _, name := range order {
		if last[name].Type != watch.Deleted {
			found = append(found, last[name].Object.DeepCopy())
		}
	}
	return found, err
}

// undoTo sends a patch as kubectl rollout undo does, which names no field manager.
func (u *User) undoTo(name string, form types.PatchType, template map[string]any, change any) error {
	kind, bare, _ := strings.Cut(name, "/")
	patch, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("undoing %s: %w", name, err)
	}
	carries, _, _ := unstructured.NestedStringMap(template, "metadata", "annotations") // none is none
	return u.do(judge.Write{What: "undo " + name, Carries: carries, Undo: true}, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return u.to(kind).Patch(ctx, bare, form, patch, metav1.PatchOptions{})
	})
}

// Accept takes what was declined.
func (u *User) Accept(name string) error {
	kind, bare, _ := strings.Cut(name, "/")
	return u.do(judge.Write{What: "accept " + name, Asked: true, Accepts: true}, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return u.to(kind).Patch(ctx, bare, types.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldManager: "configstamp-accept"})
	})
}

// kill deletes all Pods of a workload.
func (l *Life) kill(app string) error {
	now := int64(0)
	return l.to("pod").DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{LabelSelector: "app=" + app})
}

// scale changes how many replicas a workload has, if its kind can be scaled.
func (l *Life) scale(p *plan) error {
	if !p.scales || p.kind != "Deployment" && p.kind != "StatefulSet" {
		return nil
	}
	return l.Scale(p.ref(), p.replicas)
}

// deleteSnapshot cleans up, as a tool does that takes snapshots for unused. It returns what
// it has deleted, nil for nothing.
func (l *Life) deleteSnapshot(which int, wanted func(name string) bool) (*unstructured.Unstructured, error) {
	list, err := l.to("configmap").List(context.Background(), metav1.ListOptions{LabelSelector: "configstamp.dev/snapshot=true"})
	if err != nil {
		return nil, err
	}
	items := slices.DeleteFunc(list.Items, func(one unstructured.Unstructured) bool { return !wanted(one.GetName()) })
	if len(items) == 0 {
		return nil, nil
	}
	one := &items[which%len(items)]
	uid := one.GetUID()
	remember := func(removed bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.removed[uid] = removed; !removed {
			delete(l.removed, uid)
		}
	}
	remember(true) // before anybody can see it
	err = l.to("configmap").Delete(context.Background(), one.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		remember(false) // it was somebody else
		return nil, nil
	}
	return one, err
}

// forge puts something else in the place of a snapshot that a workload's template names.
func (l *Life) forge(p *plan, which int) error {
	object, err := l.to(strings.ToLower(p.kind)).Get(context.Background(), p.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	forged, err := l.deleteSnapshot(which, func(name string) bool { return bytes.Contains(text, []byte(name)) })
	if err != nil || forged == nil {
		return err
	}
	forged.SetUID("")
	forged.SetResourceVersion("")
	forged.SetManagedFields(nil)
	_ = unstructured.SetNestedField(forged.Object, judge.Marker+"-forged", "data", "k")
	_, err = l.to("configmap").Create(context.Background(), forged, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) || flooded(err) {
		return nil // it was made again meanwhile
	}
	return err
}

// flood has no more ConfigMaps made in the namespace, or, if that is so, has them made again.
func (l *Life) flood() error {
	quotas := l.Court.Run.Client.CoreV1().ResourceQuotas(l.Namespace)
	if l.full {
		return l.drain()
	}
	l.full = true
	_, err := quotas.Create(context.Background(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: flood},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	return err
}

// drain ends that.
func (l *Life) drain() error {
	if !l.full {
		return nil
	}
	l.full = false
	err := l.Court.Run.Client.CoreV1().ResourceQuotas(l.Namespace).Delete(context.Background(), flood, metav1.DeleteOptions{})
	if err != nil {
		return err
	}
	// An API server goes on for a moment with what it remembers.
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(100 * time.Millisecond) {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
		_, err = l.Court.Run.Client.CoreV1().ConfigMaps(l.Namespace).Create(context.Background(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !flooded(err) {
			return err
		}
	}
	return err
}

// Removed are the snapshots that he has deleted.
func (u *User) Removed() map[types.UID]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.removed)
}
