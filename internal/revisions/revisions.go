// Package revisions reads the revisions that the API server keeps of a workload, its
// ReplicaSets or its ControllerRevisions, and the workload itself. Each question is one
// consistent LIST; nothing is remembered.
package revisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/workload"
)

// parallel is how many LISTs are under way at once. Each may take some MiB.
const parallel = 8

// Client reads revisions.
type Client struct {
	rest  rest.Interface
	slots chan struct{}
}

// New makes a Client.
func New(config *rest.Config) (*Client, error) {
	client, err := follow.Dynamic(config, appsv1.SchemeGroupVersion)
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
	for _, item := range list.Items {
		revision, err := workload.DecodeRevision(item.Raw)
		if err != nil {
			return nil, fmt.Errorf("listing %s of namespace %q: %w", kept, namespace, err)
		}
		if revision.Owner == owner {
			found = append(found, revision)
		}
	}
	return found, nil
}

// Last is the last rollout of a workload, as its revisions tell.
type Last struct {
	// Sources are those whose stamps it changed, if it changed nothing else; Began is when its revision was made first.
	Sources []checksum.Source
	Began   time.Time
}

// Last compares the two newest revisions of a workload, which is given as JSON. Without two, or without the right to list
// them, nothing is known.
func (c *Client) Last(ctx context.Context, kind *workload.Kind, namespace string, raw []byte) (Last, error) {
	object, err := kind.Decode(raw)
	if err != nil {
		return Last{}, err
	}
	selector, err := kind.Selector(raw)
	if err != nil {
		return Last{}, err
	}
	found, err := c.Of(ctx, kind, namespace, selector, object.UID)
	if apierrors.IsForbidden(err) {
		return Last{}, nil
	}
	return last(object, found), err
}

func last(object *workload.Object, found []*workload.Revision) (is Last) {
	if len(found) < 2 {
		return is
	}
	slices.SortFunc(found, workload.NewestFirst)
	newest, before := found[0], found[1]
	if !object.Template.IsOf(newest) || !object.Template.IsOf(before) {
		return is
	}
	for key, stamp := range newest.Template.Metadata.Annotations {
		if source, ours := checksum.StampedSource(key); ours && stamp != before.Template.Metadata.Annotations[key] {
			is.Sources = append(is.Sources, source)
		}
	}
	slices.SortFunc(is.Sources, checksum.Source.Compare)
	is.Began = newest.Created
	return is
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
	list, err := c.list(ctx, at.Namespace(namespace).Resource(kind.Resource).Param("fieldSelector", "metadata.name="+name))
	if err == nil && len(list.Items) > 1 {
		err = errors.New("the API server's answer is no list of one")
	}
	var found *workload.Object
	if err == nil && len(list.Items) == 1 {
		found, err = kind.Decode(list.Items[0].Raw)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a %s of namespace %q: %w", kind.Name, namespace, err)
	}
	return found, nil
}

func (c *Client) list(ctx context.Context, request *rest.Request) (*metav1.List, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
		return follow.List(ctx, request)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
