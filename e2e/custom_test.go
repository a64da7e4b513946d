package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Custom resources with a pod template, by minimal definitions of our own.

// customKind is one of them: its definition, and where its template is.
type customKind struct {
	kind, group, version, resource string
	template                       []string
}

var customKinds = []customKind{
	{"Rollout", "argoproj.io", "v1alpha1", "rollouts", []string{"spec", "template"}},
	{"DeploymentConfig", "apps.openshift.io", "v1", "deploymentconfigs", []string{"spec", "template"}},
	{"CloneSet", "apps.kruise.io", "v1alpha1", "clonesets", []string{"spec", "template"}},
	{"Service", "serving.knative.dev", "v1", "services", []string{"spec", "template"}},
}

func (k customKind) short() string { return strings.ToLower(k.kind) }

// define has the API server serve the kind.
func (k customKind) define(t *testing.T, s *harness.Space) {
	t.Helper()
	goneAtTheEnd(t, s, k.resource+"."+k.group)
	run.Install(t, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[4]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[1]s, plural: %[4]s, singular: %[5]s, listKind: %[1]sList}
  versions:
  - name: %[3]s
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, k.kind, k.group, k.version, k.resource, k.short()))
	s.Eventually("waiting until "+k.kind+" is served", func() error {
		_, err := s.TryGet(k.short() + "/none")
		if err != nil && strings.Contains(err.Error(), "could not find the requested resource") {
			return err
		}
		return nil
	})
}

// goneAtTheEnd has a test wait at its end until a definition is gone, which takes
// a moment, so that the next one can make it anew. It is called before Install.
func goneAtTheEnd(t *testing.T, s *harness.Space, definition string) {
	t.Helper()
	t.Cleanup(func() {
		s.Eventually("waiting until the definition is gone", func() error {
			if _, err := s.TryGet("customresourcedefinition/" + definition); !apierrors.IsNotFound(err) {
				return fmt.Errorf("reading %s: %w", definition, err)
			}
			return nil
		})
	})
}

// manifest is one that uses ConfigMap c, with fields that nobody here knows.
func (k customKind) manifest(name string) string {
	lines := "metadata:\n  labels: {app: " + name + "}\n  unheardOf: {z: 1.50, a: [null, {}]}\nspec:\n  enableServiceLinks: false\n  unknownOfPods: \"x\"\n" +
		"  containers:\n  - name: app\n    image: registry.example/app:1\n    envFrom: [{configMapRef: {name: c}}]\n    unknownOfContainers: {b: 2, a: 1}\n"
	for i := len(k.template) - 1; i >= 0; i-- {
		lines = k.template[i] + ":\n" + indent(lines, 2)
	}
	return fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata: {name: %s}\n%s  strategy: {canary: {steps: [{setWeight: 20}, {pause: {}}], large: 4503599627370497}}\n", k.group, k.version, k.kind, name, lines)
}

// foreign is everything of an object that is not ours, nor the API server's own.
func (k customKind) foreign(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	object = object.DeepCopy()
	path := append(append([]string{}, k.template...), "metadata", "annotations")
	if annotations, found, _ := unstructured.NestedMap(object.Object, path...); found {
		for key := range annotations {
			if strings.Contains(key, "configstamp.dev/") {
				delete(annotations, key)
			}
		}
		unstructured.RemoveNestedField(object.Object, path...)
		if len(annotations) > 0 {
			harness.Must(t, unstructured.SetNestedMap(object.Object, annotations, path...))
		}
	}
	text, err := json.Marshal(map[string]any{"spec": object.Object["spec"], "status": object.Object["status"]})
	harness.Must(t, err)
	return string(text)
}

func (k customKind) stamp(object *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(object.Object, append(append([]string{}, k.template...), "metadata", "annotations", harness.StampKey("configmap/c"))...)
	return value
}

// serve goes through the life of one: created, readmitted by a change of its
// source.
func (k customKind) serve(t *testing.T) {
	s := run.Space(t)
	k.define(t, s)
	s.Set("configmap/c", "k", "1")
	created := s.Create(k.manifest("web"))[0]
	if got, want := k.stamp(created), s.Digest("configmap/c"); got != want {
		t.Errorf("created with stamp %q, want %q", got, want)
	}
	before := k.foreign(t, created)
	if !strings.Contains(before, "unknownOfContainers") || !strings.Contains(before, "4503599627370497") {
		t.Fatalf("the API server has dropped what it does not know: %s", before)
	}
	s.Patch(k.short()+"/web", `{"metadata":{"labels":{"x":"y"}}}`)
	s.Set("configmap/c", "k", "2")
	s.Eventually("waiting until the "+k.kind+" carries the new content", func() error {
		if got, want := k.stamp(s.Get(k.short()+"/web")), s.Digest("configmap/c"); got != want {
			return fmt.Errorf("stamp %q, want %q", got, want)
		}
		return nil
	})
	after := s.Get(k.short() + "/web")
	if diff := cmp.Diff(before, k.foreign(t, after)); diff != "" {
		t.Errorf("something that is not ours was changed:\n%s", diff)
	}
	if after.GetGeneration() != created.GetGeneration()+1 {
		t.Errorf("generation went from %d to %d", created.GetGeneration(), after.GetGeneration())
	}
	s.WantNote(k.short()+"/web", "ConfigChanged: configmap/c changed: rolling out")
	s.Quiet()
	if now := s.Get(k.short() + "/web"); now.GetResourceVersion() != after.GetResourceVersion() {
		t.Errorf("it was written again")
	}
}

func TestCustom_KnownKindsAreServedAsSoonAsTheClusterHasThem(t *testing.T) {
	t.Parallel()
	for _, kind := range customKinds {
		t.Run(kind.kind, func(t *testing.T) {
			t.Parallel()
			kind.serve(t)
			kind.adopt(t)
		})
	}
}

// adopt has one recorded that was there before.
func (k customKind) adopt(t *testing.T) {
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	created := s.Create(k.manifest("web"))[0]
	s.Label("enabled")
	s.Eventually("waiting until it is on record", func() error {
		if got, want := harness.Baseline(s.Get(k.short() + "/web"))["configmap/c"], s.Digest("configmap/c"); got != want {
			return fmt.Errorf("baseline %q, want %q", got, want)
		}
		return nil
	})
	if diff := cmp.Diff(k.foreign(t, created), k.foreign(t, s.Get(k.short()+"/web"))); diff != "" || k.stamp(s.Get(k.short()+"/web")) != "" {
		t.Errorf("it was changed:\n%s", diff)
	}
}

// What an object of a group of custom kinds controls, it rolls itself.
func TestCustom_WhatACustomKindOwnsIsLeftToIt(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	owned := func(name, apiVersion, kind string) string {
		return strings.Replace(deployment(name, "configmap/c"), "metadata: {", fmt.Sprintf("metadata: {ownerReferences: [{apiVersion: %s, kind: %s, name: x, uid: 0d8e5d5b-6a30-4f0c-8d5a-7d5a3b1f0c11, controller: true}], ", apiVersion, kind), 1)
	}
	if stamps := harness.Stamps(s.DryCreate(owned("d", "serving.knative.dev/v1", "Revision"))); len(stamps) > 0 {
		t.Errorf("a Deployment of Knative's Revision was stamped: %v", stamps)
	}
	if stamps := harness.Stamps(s.DryCreate(owned("d", "example.com/v1", "Database"))); len(stamps) != 1 {
		t.Errorf("a Deployment of somebody's Database has stamps %v", stamps)
	}
}

// A kind that nobody here has heard of, served by a flag.
func TestCustom_ByConfiguration(t *testing.T) {
	product := run.Exclusive(t)
	run := run.Of(t)
	kind := customKind{"Machine", "example.com", "v1", "machines", []string{"spec", "deep", "pod"}}
	run.Install(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: configstamp-machines}
rules: [{apiGroups: [example.com], resources: [machines], verbs: [get, list, watch, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: configstamp-machines}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: configstamp-machines}
subjects: [{kind: ServiceAccount, name: configstamp, namespace: configstamp}]
`+fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: configstamp-machines}
webhooks:
- name: machines.configstamp.dev
  namespaceSelector: {matchLabels: {configstamp.dev/inject: enabled}}
  clientConfig: {url: %q, caBundle: %s}
  rules: [{apiGroups: [example.com], apiVersions: [v1], resources: [machines], operations: [CREATE, UPDATE]}]
  sideEffects: None
  failurePolicy: Ignore
  reinvocationPolicy: IfNeeded
  admissionReviewVersions: [v1]
`, product.Balancer.URL(), run.Authority.Base64()))
	options := harness.Usual()
	flag := "--workload=example.com/v1/machines=spec.deep.pod"
	options.Webhook, options.Controller = append(options.Webhook, flag), append(options.Controller, flag)
	harness.Must(t, product.Restart(t.Context(), options))
	kind.serve(t)
}
