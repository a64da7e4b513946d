package gitops

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/fluxcd/pkg/ssa"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/dynamic"
	"k8s.io/kube-openapi/pkg/util/proto"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/harness"
)

// tool keeps a Deployment or StatefulSet of a namespace as a manifest says.
type tool interface {
	// sync makes the cluster hold what the manifest says, as the tool does when
	// somebody syncs, or when it heals by itself.
	sync(t *testing.T, manifest string)
	// drift is in what the cluster differs from the manifest in the eyes of the
	// tool, "" when it does not.
	drift(t *testing.T, manifest string) string
	// asks tells that the tool compares by a dry run on the server.
	asks() bool
}

// tools makes each tool for a namespace.
func tools() map[string]func(*harness.Space) tool {
	return map[string]func(*harness.Space) tool{
		"Argo CD":                                    func(s *harness.Space) tool { return &argo{Space: s} },
		"Argo CD, never applied by kubectl":          func(s *harness.Space) tool { return &argo{Space: s, serverSide: true} },
		"Argo CD, ServerSideApply":                   func(s *harness.Space) tool { return &argo{Space: s, serverSide: true, structured: true} },
		"Argo CD, ServerSideDiff":                    func(s *harness.Space) tool { return &argo{Space: s, serverSide: true, dryRun: true} },
		"Argo CD, ServerSideDiff of a kubectl apply": func(s *harness.Space) tool { return &argo{Space: s, dryRun: true} },
		"Argo CD, IncludeMutationWebhook":            func(s *harness.Space) tool { return &argo{Space: s, serverSide: true, dryRun: true, mutations: true} },
		"Flux":                                       func(s *harness.Space) tool { return &flux{Space: s} },
		"Helm 3":                                     func(s *harness.Space) tool { return &helm{Space: s} },
	}
}

// resource is where the API server keeps objects of a workload's kind.
func resource(object *unstructured.Unstructured) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: strings.ToLower(object.GetKind()) + "s"}
}

// live is the object of a manifest as the cluster has it.
func live(s *harness.Space, object *unstructured.Unstructured) *unstructured.Unstructured {
	return s.Get(strings.ToLower(object.GetKind()) + "/" + object.GetName())
}

// desired is a manifest as these tools hold it: with its namespace.
func desired(t *testing.T, s *harness.Space, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON([]byte(manifest))
	harness.Must(t, err)
	harness.Must(t, object.UnmarshalJSON(text))
	object.SetNamespace(s.Namespace)
	return object
}

// argo is Argo CD's gitops-engine: pkg/diff, with the options that its controller
// gives it; and kubectl apply, which it syncs by.
type argo struct {
	*harness.Space
	serverSide bool // the sync option ServerSideApply=true
	structured bool // and the diff that goes with it
	dryRun     bool // the compare option ServerSideDiff=true
	mutations  bool // and IncludeMutationWebhook=true
}

const argoManager = "argocd-controller"

func (a *argo) sync(t *testing.T, manifest string) {
	t.Helper()
	args := []string{"apply", "-f", "-"}
	if a.serverSide {
		args = append(args, "--server-side", "--force-conflicts", "--field-manager="+argoManager)
	}
	a.In(t).KubectlInput(manifest, args...)
}

func (a *argo) drift(t *testing.T, manifest string) string {
	t.Helper()
	schemas, err := a.Run.Client.Discovery().OpenAPISchema()
	harness.Must(t, err)
	models, err := proto.NewOpenAPIData(schemas)
	harness.Must(t, err)
	types, err := managedfields.NewGVKParser(models, false)
	harness.Must(t, err)
	wanted := desired(t, a.Space, manifest)
	found, err := diff.Diff(wanted, live(a.Space, wanted),
		diff.WithManager(argoManager), diff.WithGVKParser(types), diff.WithStructuredMergeDiff(a.structured),
		diff.WithServerSideDiff(a.dryRun), diff.WithServerSideDryRunner(&dryRunner{a.Run.Dynamic}), diff.WithIgnoreMutationWebhook(!a.mutations))
	harness.Must(t, err)
	if !found.Modified {
		return ""
	}
	return differences(t, found.NormalizedLive, found.PredictedLive)
}

func (a *argo) asks() bool { return a.dryRun }

// dryRunner applies on the server, by force and without effect.
type dryRunner struct{ dynamic.Interface }

// Run implements diff.ServerSideDryRunner.
func (r *dryRunner) Run(ctx context.Context, object *unstructured.Unstructured, manager string) (string, error) {
	stored, err := r.Resource(resource(object)).Namespace(object.GetNamespace()).Apply(ctx, object.GetName(), object,
		metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", fmt.Errorf("dry run of %s: %w", object.GetName(), err)
	}
	text, err := stored.MarshalJSON()
	return string(text), err
}

// flux is fluxcd/pkg/ssa, by which kustomize-controller and helm-controller compare
// and apply.
type flux struct{ *harness.Space }

func (f *flux) manager(t *testing.T) *ssa.ResourceManager {
	t.Helper()
	api, err := client.New(f.Run.Config, client.Options{})
	harness.Must(t, err)
	return ssa.NewResourceManager(api, nil, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
}

func (f *flux) sync(t *testing.T, manifest string) {
	t.Helper()
	options := ssa.DefaultApplyOptions()
	// What people have done with kubectl is Flux's own from then on, and goes if it is
	// not in Git.
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
		},
	}
	_, err := f.manager(t).Apply(t.Context(), desired(t, f.Space, manifest), options)
	harness.Must(t, err)
}

func (f *flux) drift(t *testing.T, manifest string) string {
	t.Helper()
	entry, live, wanted, err := f.manager(t).Diff(t.Context(), desired(t, f.Space, manifest), ssa.DefaultDiffOptions())
	harness.Must(t, err)
	if entry.Action == ssa.UnchangedAction {
		return ""
	}
	from, err := live.MarshalJSON()
	harness.Must(t, err)
	to, err := wanted.MarshalJSON()
	harness.Must(t, err)
	return differences(t, from, to)
}

func (f *flux) asks() bool { return true }

// helm is what Helm 3 does with an object at each upgrade: a three-way merge of the
// manifest of the release before, that of this release, and the cluster.
type helm struct {
	*harness.Space
	before string
}

func (h *helm) patch(t *testing.T, manifest string) []byte {
	t.Helper()
	original, err := desired(t, h.Space, h.before).MarshalJSON()
	harness.Must(t, err)
	wanted := desired(t, h.Space, manifest)
	modified, err := wanted.MarshalJSON()
	harness.Must(t, err)
	current, err := live(h.Space, wanted).MarshalJSON()
	harness.Must(t, err)
	var kind any = appsv1.Deployment{}
	if wanted.GetKind() == "StatefulSet" {
		kind = appsv1.StatefulSet{}
	}
	kinds, err := strategicpatch.NewPatchMetaFromStruct(kind)
	harness.Must(t, err)
	patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, kinds, true)
	harness.Must(t, err)
	return patch
}

func (h *helm) sync(t *testing.T, manifest string) {
	t.Helper()
	if h.before == "" {
		h.Create(manifest)
	} else if patch := h.patch(t, manifest); string(patch) != "{}" {
		object := desired(t, h.Space, manifest)
		_, err := h.Run.Dynamic.Resource(resource(object)).Namespace(h.Namespace).Patch(t.Context(), object.GetName(), types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "helm"})
		harness.Must(t, err)
	}
	h.before = manifest
}

func (h *helm) drift(t *testing.T, manifest string) string {
	t.Helper()
	if patch := string(h.patch(t, manifest)); patch != "{}" {
		return patch
	}
	return ""
}

func (h *helm) asks() bool { return false }

// differences names the fields in which two objects differ, the bookkeeping of the
// API server aside, and the status, which the Deployment's controller may write
// between the two, and nobody of ours.
func differences(t *testing.T, from, to []byte) string {
	t.Helper()
	var was, is map[string]any
	harness.Must(t, json.Unmarshal(from, &was))
	harness.Must(t, json.Unmarshal(to, &is))
	left, right := leaves(was), leaves(is)
	var paths []string
	for path, value := range left {
		if right[path] != value {
			paths = append(paths, path)
		}
	}
	for path := range right {
		if _, ok := left[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return strings.Join(slices.Compact(paths), " ")
}

func leaves(object map[string]any) map[string]string {
	all := map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, item := range value {
				walk(path+"."+key, item)
			}
		case []any:
			for i, item := range value {
				walk(fmt.Sprintf("%s[%d]", path, i), item)
			}
		default:
			all[path] = fmt.Sprint(value)
		}
	}
	walk("", object)
	for path := range all {
		if strings.HasPrefix(path, ".metadata.managedFields") || strings.HasPrefix(path, ".status.") || path == ".metadata.resourceVersion" || path == ".metadata.generation" {
			delete(all, path)
		}
	}
	return all
}
