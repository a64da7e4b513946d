package rights

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Request is one that the API server answered, as its audit log tells.
type Request struct {
	// Verb, Group and Resource are as a rule would have them; a subresource is pods/log.
	Verb, Group, Resource string
	// Namespace is "" for what belongs to none, and for all at once.
	Namespace string
	// Name is "" when it asked for more than one object, or for a new one.
	Name string
	// Agent is what the client calls itself.
	Agent string
	// Forbidden: no role allows it. What an admission policy refuses is not that.
	Forbidden bool
}

// String tells what was asked for, and where.
func (q Request) String() string {
	return thing(q.Verb, q.Group, q.Resource, q.Name) + " in " + place(q.Namespace)
}

// event is what counts of an entry of the audit log (audit.k8s.io/v1).
type event struct {
	Stage     string
	Verb      string
	UserAgent string
	User      struct{ Username string }
	ObjectRef *struct{ APIGroup, Resource, Subresource, Namespace, Name string }

	Annotations map[string]string
}

// Read reads the requests of one user from an audit log of JSON lines. Paths
// that are no resource, such as /version, are everybody's and are left out.
func Read(log io.Reader, user string) ([]Request, error) {
	var all []Request
	lines := bufio.NewReader(log)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading line %d of the audit log: %w", number, err)
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading line %d of the audit log: %w", number, err)
		}
		decision := e.Annotations["authorization.k8s.io/decision"]
		if e.User.Username != user || e.ObjectRef == nil || decision == "" {
			continue // with no decision, the server stopped in the middle of it
		}
		q := Request{
			Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource,
			Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Agent: e.UserAgent, Forbidden: decision == "forbid",
		}
		if e.ObjectRef.Subresource != "" {
			q.Resource += "/" + e.ObjectRef.Subresource
		}
		all = append(all, q)
	}
}
