package rights

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const roles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: wide}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list]}
- {apiGroups: [apps], resources: [deployments, daemonsets], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: wide}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: wide}
subjects: [{kind: ServiceAccount, name: us, namespace: own}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: aggregated, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: narrow, namespace: own}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [key, ca], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: narrow, namespace: own}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: narrow}
subjects: [{kind: Group, name: somebody}, {kind: ServiceAccount, name: us, namespace: own}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: public, namespace: own}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [settings], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: public, namespace: own}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: public}
subjects: [{kind: Group, name: 'system:authenticated'}]
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: own}
`

func granted(t *testing.T, manifest string) ([]Right, error) {
	t.Helper()
	var objects []*unstructured.Unstructured
	for text := range strings.SplitSeq(manifest, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return Of(objects)
}

func TestOf(t *testing.T) {
	got, err := granted(t, roles)
	if err != nil {
		t.Fatal(err)
	}
	want := []Right{
		{"ClusterRole/wide", "", "get", "", "secrets", ""},
		{"ClusterRole/wide", "", "list", "", "secrets", ""},
		{"ClusterRole/wide", "", "patch", "apps", "deployments", ""},
		{"ClusterRole/wide", "", "patch", "apps", "daemonsets", ""},
		{"Role/narrow", "own", "get", "", "secrets", "key"},
		{"Role/narrow", "own", "get", "", "secrets", "ca"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("single rights (-want +got):\n%s", diff)
	}
	for _, unnamed := range []string{"resources: [secrets]", "verbs: [get, list]", `apiGroups: [""]`} {
		field, _, _ := strings.Cut(unnamed, ":")
		if _, err := granted(t, strings.Replace(roles, unnamed, field+": ['*']", 1)); err == nil {
			t.Errorf("%s: ['*'] is taken for something that is named", field)
		}
	}
}

func TestJudge(t *testing.T) {
	rights, err := granted(t, roles)
	if err != nil {
		t.Fatal(err)
	}
	all := []Request{ // what uses every right
		{Verb: "get", Resource: "secrets", Namespace: "any", Name: "x"},
		{Verb: "list", Resource: "secrets"},
		{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "any", Name: "web"},
		{Verb: "patch", Group: "apps", Resource: "daemonsets", Namespace: "any", Name: "web"},
		{Verb: "get", Resource: "secrets", Namespace: "own", Name: "key"},
		{Verb: "get", Resource: "secrets", Namespace: "own", Name: "ca"},
	}
	scaled := Request{Verb: "patch", Group: "apps", Resource: "deployments/scale", Namespace: "any", Name: "web"}
	refused := Request{Verb: "delete", Resource: "secrets", Namespace: "any", Name: "x", Forbidden: true}
	for name, test := range map[string]struct {
		requests   []Request
		exceptions []Exception
		want       Verdict
	}{
		"everything is used, and nothing else": {requests: all},
		"a wide right is not used by what a narrow one gives": {
			requests: append(all[1:], all[4]),
			want:     Verdict{Unused: rights[:1]},
		},
		"a narrow right is of no use elsewhere": {
			requests: append(all[:4:4], Request{Verb: "get", Resource: "secrets", Namespace: "any", Name: "key"}),
			want:     Verdict{Unused: rights[4:]},
		},
		"what somebody else allowed is beyond, once": {
			requests: append(all, scaled, scaled),
			want:     Verdict{Beyond: []Request{scaled}},
		},
		"what was refused is denied, and uses nothing": {
			requests: append(all[1:], refused, Request{Verb: "get", Resource: "secrets", Forbidden: true}),
			want:     Verdict{Denied: []Request{refused, {Verb: "get", Resource: "secrets", Forbidden: true}}, Unused: rights[:1]},
		},
		"an exception excuses, and must be needed": {
			requests:   append(all, refused, scaled),
			exceptions: []Exception{{Verb: "delete"}, {Resource: "deployments/scale"}, {Verb: "delete", Namespace: "other"}},
			want:       Verdict{Idle: []Exception{{Verb: "delete", Namespace: "other"}}},
		},
	} {
		if diff := cmp.Diff(test.want, Judge(rights, test.requests, test.exceptions)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRead(t *testing.T) {
	const log = `{"stage":"ResponseComplete","verb":"get","user":{"username":"us"},"userAgent":"a/1","objectRef":{"resource":"pods","subresource":"log","namespace":"n","name":"p"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"stage":"ResponseStarted","verb":"watch","user":{"username":"us"},"userAgent":"a/1","objectRef":{"apiGroup":"apps","resource":"deployments"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"stage":"ResponseComplete","verb":"get","user":{"username":"somebody"},"objectRef":{"resource":"pods"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"stage":"ResponseComplete","verb":"get","user":{"username":"us"},"requestURI":"/version","annotations":{"authorization.k8s.io/decision":"allow"}}
`
	want := []Request{
		{Verb: "get", Resource: "pods/log", Namespace: "n", Name: "p", Agent: "a/1", Forbidden: true},
		{Verb: "watch", Group: "apps", Resource: "deployments", Agent: "a/1"},
	}
	got, err := Read(strings.NewReader(log), "us")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if _, err := Read(strings.NewReader(log[:len(log)-20]), "us"); err == nil {
		t.Error("half a line passes for a whole log")
	}
}
