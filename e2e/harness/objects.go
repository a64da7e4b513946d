package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// resources are the kinds that tests write, by the names that kubectl takes.
var resources = []struct {
	kind, short string
	schema.GroupVersionResource
	cluster bool
}{
	{"ConfigMap", "configmap", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, false},
	{"Secret", "secret", schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, false},
	{"Pod", "pod", schema.GroupVersionResource{Version: "v1", Resource: "pods"}, false},
	{"ReplicationController", "replicationcontroller", schema.GroupVersionResource{Version: "v1", Resource: "replicationcontrollers"}, false},
	{"ServiceAccount", "serviceaccount", schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, false},
	{"Namespace", "namespace", schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, true},
	{"Deployment", "deployment", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, false},
	{"StatefulSet", "statefulset", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, false},
	{"DaemonSet", "daemonset", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}, false},
	{"ReplicaSet", "replicaset", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, false},
	{"ControllerRevision", "controllerrevision", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}, false},
	{"CronJob", "cronjob", schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}, false},
	{"Job", "job", schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, false},
	{"CustomResourceDefinition", "customresourcedefinition", schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, true},
	{"ConfigRollout", "configrollout", schema.GroupVersionResource{Group: "configstamp.dev", Version: "v1alpha1", Resource: "configrollouts"}, false},
	{"Rollout", "rollout", schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}, false},
	{"DeploymentConfig", "deploymentconfig", schema.GroupVersionResource{Group: "apps.openshift.io", Version: "v1", Resource: "deploymentconfigs"}, false},
	{"CloneSet", "cloneset", schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "clonesets"}, false},
	{"Service", "service", schema.GroupVersionResource{Group: "serving.knative.dev", Version: "v1", Resource: "services"}, false},
	{"Machine", "machine", schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "machines"}, false},
	{"SecretProviderClassPodStatus", "secretproviderclasspodstatus", schema.GroupVersionResource{Group: "secrets-store.csi.x-k8s.io", Version: "v1", Resource: "secretproviderclasspodstatuses"}, false},
	{"Role", "role", schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, false},
	{"RoleBinding", "rolebinding", schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}, false},
	{"ClusterRole", "clusterrole", schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, true},
	{"ClusterRoleBinding", "clusterrolebinding", schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}, true},
	{"MutatingWebhookConfiguration", "mutatingwebhookconfiguration", schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}, true},
	{"ValidatingWebhookConfiguration", "validatingwebhookconfiguration", schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}, true},
	{"MutatingAdmissionPolicy", "mutatingadmissionpolicy", schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}, true},
	{"MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybinding", schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings"}, true},
	{"ValidatingAdmissionPolicy", "validatingadmissionpolicy", schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}, true},
	{"ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybinding", schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}, true},
}

// client finds the client of a kind, by its Kind or its short name.
func client(all dynamic.Interface, kind, namespace string) (dynamic.ResourceInterface, error) {
	for _, r := range resources {
		if r.kind == kind || r.short == kind {
			if r.cluster {
				return all.Resource(r.GroupVersionResource), nil
			}
			return all.Resource(r.GroupVersionResource).Namespace(namespace), nil
		}
	}
	return nil, fmt.Errorf("kind %q is not in the harness's table (objects.go)", kind)
}

// kindOf is the Kind of a short name.
func kindOf(short string) string {
	for _, r := range resources {
		if r.short == short {
			return r.kind
		}
	}
	return short
}

// parse reads YAML of one or more objects.
func parse(manifest string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading a manifest: %w\n%s", err, manifest)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// install creates an object, or puts it in the place of one that is there.
func install(ctx context.Context, all dynamic.Interface, object *unstructured.Unstructured) error {
	to, err := client(all, object.GetKind(), object.GetNamespace())
	if err != nil {
		return err
	}
	_, err = to.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var old *unstructured.Unstructured
		if old, err = to.Get(ctx, object.GetName(), metav1.GetOptions{}); err == nil {
			object.SetResourceVersion(old.GetResourceVersion())
			_, err = to.Update(ctx, object, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("installing %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
