package rights

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Right is the smallest thing that a role gives: one verb on one resource.
type Right struct {
	// Role is where it stands: ClusterRole/configstamp.
	Role string
	// Namespace is the only one where it holds, "" for all.
	Namespace string
	// Verb, Group and Resource are as a rule has them; a subresource is pods/log.
	Verb, Group, Resource string
	// Name is the only object that it holds for, "" for all.
	Name string
}

// String is as an operator would say it.
func (r Right) String() string {
	return fmt.Sprintf("%s of %s: %s", r.Role, place(r.Namespace), thing(r.Verb, r.Group, r.Resource, r.Name))
}

func place(namespace string) string {
	if namespace == "" {
		return "the whole cluster"
	}
	return "namespace " + namespace
}

func thing(verb, group, resource, name string) string {
	if group != "" {
		resource += "." + group
	}
	if name != "" {
		resource += "/" + name
	}
	return verb + " " + resource
}

// gives reports whether the right allows a request.
func (r Right) gives(q Request) bool {
	return r.Verb == q.Verb && r.Group == q.Group && r.Resource == q.Resource &&
		(r.Namespace == "" || r.Namespace == q.Namespace) && (r.Name == "" || r.Name == q.Name)
}

// narrower reports whether the right says more exactly what it is for.
func (r Right) narrower(than Right) bool {
	if (r.Name == "") != (than.Name == "") {
		return r.Name != ""
	}
	return r.Namespace != "" && than.Namespace == ""
}

// Of returns the single rights of every ClusterRole and Role among objects that a binding gives to a service
// account. A rule that does not name what it gives is an error.
func Of(objects []*unstructured.Unstructured) ([]Right, error) {
	var all []Right
	for _, object := range objects {
		if !strings.HasPrefix(object.GetAPIVersion(), rbacv1.GroupName+"/") || object.GetKind() != "ClusterRole" && object.GetKind() != "Role" || !ofAccount(objects, object) {
			continue
		}
		role := object.GetKind() + "/" + object.GetName()
		var read rbacv1.ClusterRole // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
			return nil, fmt.Errorf("reading %s: %w", role, err)
		}
		for _, rule := range read.Rules {
			if slices.Contains(slices.Concat(rule.Verbs, rule.APIGroups, rule.Resources), "*") || len(rule.NonResourceURLs) > 0 {
				return nil, fmt.Errorf("%s of namespace %q has the rule %s: name each verb, group and resource, and no paths", role, object.GetNamespace(), rule.String())
			}
			all = append(all, expand(rule, Right{Role: role, Namespace: object.GetNamespace()})...)
		}
	}
	return all, nil
}

// ofAccount reports whether some binding gives a role to a service account.
func ofAccount(objects []*unstructured.Unstructured, role *unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool {
		to, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
		kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind")
		if to != role.GetName() || kind != role.GetKind() || role.GetNamespace() != "" && object.GetNamespace() != role.GetNamespace() {
			return false
		}
		subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
		return slices.ContainsFunc(subjects, func(subject any) bool {
			fields, _ := subject.(map[string]any)
			return fields["kind"] == rbacv1.ServiceAccountKind
		})
	})
}

func expand(rule rbacv1.PolicyRule, one Right) (all []Right) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, one.Group = range rule.APIGroups {
		for _, one.Resource = range rule.Resources {
			for _, one.Verb = range rule.Verbs {
				for _, one.Name = range names {
					all = append(all, one)
				}
			}
		}
	}
	return all
}
