package workload

import "cmp"

// Ref names one object of a kind. The zero Ref names none, and has no text.
type Ref struct {
	Kind            *Kind
	Namespace, Name string
}

// String names the object in logs: deployments.apps shop/web-app.
func (r Ref) String() string { return r.Kind.String() + " " + r.Namespace + "/" + r.Name }

// People names the object in events about others of its namespace: Deployment web-app.
func (r Ref) People() string { return r.Kind.Name + " " + r.Name }

// Compare orders objects by namespace, name and kind.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name), cmp.Compare(r.Kind.Resource, other.Kind.Resource))
}
