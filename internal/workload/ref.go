package workload

import (
	"cmp"
	"strings"
)

// Ref names one object of a kind. The zero Ref names none, and has no text.
type Ref struct {
	Kind            *Kind
	Namespace, Name string
}

// String names the object in logs: deployments.apps shop/web-app.
func (r Ref) String() string { return r.Kind.String() + " " + r.Namespace + "/" + r.Name }

// People names the object in events about others of its namespace: Deployment web-app.
func (r Ref) People() string { return r.Kind.Name + " " + r.Name }

// Text names the object as kubectl does: deployment/web-app. A custom kind has its group,
// as kinds of other groups have the same names.
func (r Ref) Text() string {
	kind := strings.ToLower(r.Kind.Name)
	if r.Kind.Custom {
		kind += "." + r.Kind.Group
	}
	return kind + "/" + r.Name
}

// Compare orders objects by namespace, name and kind.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name), cmp.Compare(r.Kind.Resource, other.Kind.Resource))
}
