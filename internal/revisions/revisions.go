// Package revisions reads the revisions that the API server keeps of a workload, its
// ReplicaSets or its ControllerRevisions, and the workload itself. Each question is one
// consistent LIST; nothing is remembered.
package revisions

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/workload"
)

// parallel is how many LISTs are under way at once. Each may take some MiB.
const parallel = 8

// Client reads revisions.
type Client struct {
	rest  rest.Interface
	slots chan struct{}
}

// revision is one as client-go hands it on.
type revision struct {
	metav1.PartialObjectMetadata
	of *workload.Revision
}

// New makes a Client.
func New(config *rest.Config) (*Client, error) {
	client, err := follow.NewRaw(config, appsv1.SchemeGroupVersion, func(text []byte) (runtime.Object, error) {
		read, err := workload.DecodeRevision(text)
		if err != nil {
			return nil, err
		}
		return &revision{of: read}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading revisions: %w", err)
	}
	return &Client{rest: client, slots: make(chan struct{}, parallel)}, nil
}

// Of lists the revisions that a workload controls now; owner "": that nobody controls. selector
// is the workload's label selector.
func (c *Client) Of(ctx context.Context, kind *workload.Kind, namespace, selector string, owner types.UID) ([]*workload.Revision, error) {
	kept := kind.RevisionResource()
	if kept == "" {
		return nil, nil
	}
	list, err := c.list(ctx, c.rest.Get().Namespace(namespace).Resource(kept).Param("labelSelector", selector))
	if err != nil {
		return nil, fmt.Errorf("listing %s of namespace %q: %w", kept, namespace, err)
	}
	var found []*workload.Revision
	for i := range list.Items {
		if one, ok := list.Items[i].Object.(*revision); ok && one.of.Owner == owner {
			found = append(found, one.of)
		}
	}
	return found, nil
}

// HasPods reports whether there is a pod of a revision now.
func (c *Client) HasPods(ctx context.Context, namespace, selector string, of *workload.Revision) (bool, error) {
	list, err := c.list(ctx, c.rest.Get().AbsPath("/api/v1").Namespace(namespace).Resource("pods").
		Param("labelSelector", selector+","+of.PodSelector()).Param("limit", "1"))
	if err != nil {
		return false, fmt.Errorf("listing the pods of revision %q of namespace %q: %w", of.Name, namespace, err)
	}
	return len(list.Items) > 0, nil
}

// Stored is an object as it is now; nil without an error: there is none of that name. It is
// listed by its name, because we have no right to get ReplicaSets.
func (c *Client) Stored(ctx context.Context, kind *workload.Kind, namespace, name string) (*workload.Object, error) {
	at := c.rest.Get().AbsPath("/apis", kind.Group, kind.Version)
	if kind.Group == "" {
		at = c.rest.Get().AbsPath("/api", kind.Version)
	}
	var found *workload.Object
	err := c.ask(ctx, at.Namespace(namespace).Resource(kind.Resource).Param("fieldSelector", "metadata.name="+name), func(answer rest.Result) error {
		body, err := answer.Raw()
		if err != nil {
			return err
		}
		var list struct {
			Items []jsontext.Value `json:"items"`
		}
		if err := json.Unmarshal(body, &list, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil || len(list.Items) > 1 {
			return errors.New("the API server's answer is no list of one")
		}
		for _, one := range list.Items {
			found, err = kind.Decode(one)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading a %s of namespace %q: %w", kind.Name, namespace, err)
	}
	return found, nil
}

func (c *Client) list(ctx context.Context, request *rest.Request) (list *metav1.List, err error) {
	return list, c.ask(ctx, request, func(answer rest.Result) error {
		object, err := answer.Get()
		if err != nil {
			return err
		}
		var ok bool
		if list, ok = object.(*metav1.List); !ok {
			return fmt.Errorf("the API server answered with %T", object)
		}
		return nil
	})
}

func (c *Client) ask(ctx context.Context, request *rest.Request, read func(rest.Result) error) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return refusal.Plain(read(request.Do(ctx)))
}
