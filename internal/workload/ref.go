package workload

// Ref names one object of a kind. The zero Ref names none, and has no text.
type Ref struct {
	Kind            *Kind
	Namespace, Name string
}

// String names the object in logs: deployments.apps shop/web-app.
func (r Ref) String() string { return r.Kind.String() + " " + r.Namespace + "/" + r.Name }

// People names the object in events about others of its namespace: Deployment web-app.
func (r Ref) People() string { return r.Kind.Name + " " + r.Name }
