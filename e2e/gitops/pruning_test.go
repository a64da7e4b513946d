package gitops

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/engine"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/fluxcd/pkg/ssa"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What these tools know their own objects by.
const (
	argoLabel      = "app.kubernetes.io/instance"
	argoAnnotation = "argocd.argoproj.io/tracking-id"
	app            = "shop"
)

// tracked is configmap/c in Git, with all that tools track by.
const tracked = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  labels: {app.kubernetes.io/instance: shop, app.kubernetes.io/managed-by: Helm}
  annotations: {"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:default/c", meta.helm.sh/release-name: shop}
data: {k: "1"}
`

// snapshots are the names of a namespace's snapshots, sorted.
func snapshots(t *testing.T, s *harness.Space) []string {
	t.Helper()
	list, err := s.Run.Client.CoreV1().ConfigMaps(s.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "configstamp.dev/snapshot=true"})
	harness.Must(t, err)
	var names []string
	for _, one := range list.Items {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return names
}

// wantPruned checks that a source is gone, and no snapshot is.
func wantPruned(t *testing.T, s *harness.Space, before []string) {
	t.Helper()
	s.Eventually("waiting for pruning", func() error {
		if _, err := s.TryGet("configmap/c"); err == nil {
			return errors.New("the source is still there")
		}
		return nil
	})
	if after := snapshots(t, s); !slices.Equal(before, after) {
		t.Errorf("there were %q, and are %q", before, after)
	}
	s.Quiet()
}

// What Argo CD prunes is what it tracks and Git has not: here it is its engine that looks
// and syncs. Snapshots of a tracked source are not tracked; the source is.
func TestArgoPrunesNoSnapshot(t *testing.T) {
	t.Parallel()
	s := pinned(t)
	objects := []*unstructured.Unstructured{desired(t, s, tracked), desired(t, s, manifest)}
	objects[1].SetLabels(map[string]string{argoLabel: app})
	watched := cache.NewClusterCache(s.Run.Config, cache.SetNamespaces([]string{s.Namespace}), cache.SetClusterResources(false), cache.SetLogr(logr.Discard()),
		cache.SetPopulateResourceInfoHandler(func(object *unstructured.Unstructured, _ bool) (any, bool) {
			of := object.GetLabels()[argoLabel]
			if id, _, is := strings.Cut(object.GetAnnotations()[argoAnnotation], ":"); is {
				of = id
			}
			return of, of != ""
		}))
	argo := engine.NewEngine(s.Run.Config, watched, engine.WithLogr(logr.Discard()))
	stop, err := argo.Run()
	harness.Must(t, err)
	t.Cleanup(stop)
	sync := func(objects ...*unstructured.Unstructured) (pruned []string) {
		t.Helper()
		results, err := argo.Sync(t.Context(), objects, func(r *cache.Resource) bool { return r.Info == app }, "", s.Namespace, sync.WithPrune(true), sync.WithLogr(logr.Discard()))
		harness.Must(t, err)
		for _, result := range results {
			if result.Status == common.ResultCodePruned {
				pruned = append(pruned, result.ResourceKey.Kind+"/"+result.ResourceKey.Name)
			}
		}
		return pruned
	}
	sync(objects...)
	before := s.Settled("deployment/d")
	wantPin(t, s, "deployment/d")
	s.Edit("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantPin(t, s, "deployment/d")
	made := snapshots(t, s)
	if len(made) != 2 {
		t.Fatalf("there are %q, want two", made)
	}
	objects[0].Object["data"] = map[string]any{"k": "2"}
	if pruned := sync(objects...); len(pruned) > 0 || !slices.Equal(made, snapshots(t, s)) {
		t.Errorf("pruned %q; there are %q, were %q", pruned, snapshots(t, s), made)
	}
	if pruned := sync(objects[1]); !slices.Equal(pruned, []string{"ConfigMap/c"}) {
		t.Errorf("pruned %q, want the source alone", pruned)
	}
	wantPruned(t, s, made)
}

// What Flux prunes is what it has applied once and Git has not, if it has Flux's labels. It
// would leave a snapshot even if it were told to delete it.
func TestFluxPrunesNoSnapshot(t *testing.T) {
	t.Parallel()
	s := pinned(t)
	manager := (&flux{s}).manager(t)
	objects := []*unstructured.Unstructured{desired(t, s, tracked), desired(t, s, manifest)}
	manager.SetOwnerLabels(objects, app, s.Namespace)
	apply := func() {
		t.Helper()
		_, err := manager.ApplyAll(t.Context(), objects, ssa.DefaultApplyOptions())
		harness.Must(t, err)
	}
	apply()
	before := s.Settled("deployment/d")
	objects[0].Object["data"] = map[string]any{"k": "2"}
	apply()
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantPin(t, s, "deployment/d")
	made := snapshots(t, s)
	if len(made) != 2 {
		t.Fatalf("there are %q, want two", made)
	}
	stale := []*unstructured.Unstructured{objects[0]}
	for _, name := range made {
		stale = append(stale, s.Get("configmap/"+name))
	}
	changes, err := manager.DeleteAll(t.Context(), stale, ssa.DeleteOptions{
		PropagationPolicy: metav1.DeletePropagationBackground, Inclusions: manager.GetOwnerLabels(app, s.Namespace),
	})
	harness.Must(t, err)
	for _, entry := range changes.Entries {
		if deleted := entry.Action == ssa.DeletedAction; deleted != strings.HasSuffix(entry.Subject, "/c") {
			t.Errorf("%s: %s", entry.Subject, entry.Action)
		}
	}
	wantPruned(t, s, made)
}
