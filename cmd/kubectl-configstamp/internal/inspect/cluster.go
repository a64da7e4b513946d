package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

const (
	// pageSize is how many objects are asked for at once, as kubectl does.
	pageSize = 500
	// atOnce is how many requests are under way at most.
	atOnce = 50
)

// Cluster reads one cluster with the rights of one user. Its methods may be called from
// any goroutine.
//
// A list that the user may not have is no error: it is empty, and noted among the Gaps.
type Cluster struct {
	client       *rest.RESTClient
	installation string

	said sync.Map // by namespace, what AskNamespaces was answered

	mu   sync.Mutex
	gaps map[seen.Gap]bool
}

// New makes a Cluster. installation is configstamp's own namespace. Nothing is asked yet.
func New(config *rest.Config, installation string) (*Cluster, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	own := rest.CopyConfig(config)
	own.QPS = -1 // atOnce bounds the requests; the API server's fair queues do the rest
	own.WarningHandler = rest.NoWarnings{}
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("making a client of the cluster: %w", err)
	}
	return &Cluster{client: client, installation: installation, gaps: map[seen.Gap]bool{}}, nil
}

// Gaps lists what could not be looked at so far, sorted.
func (c *Cluster) Gaps() []seen.Gap {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Keys(c.gaps), seen.Gap.Compare)
}

// miss notes that something could not be looked at.
func (c *Cluster) miss(what, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gaps[seen.Gap{What: what, Why: why}] = true
}

// query is what is asked of a collection.
type query struct {
	gvr            schema.GroupVersionResource
	namespace      string // "" for all, or for what is in none
	labels, fields string // selectors
	metadata       bool   // PartialObjectMetadata alone
	unscoped       bool   // the objects are in no namespace
	name           string // one object
}

func (q *query) path() string {
	path := "/apis/" + q.gvr.Group + "/" + q.gvr.Version
	if q.gvr.Group == "" {
		path = "/api/" + q.gvr.Version
	}
	if q.namespace != "" {
		path += "/namespaces/" + q.namespace
	}
	path += "/" + q.gvr.Resource
	if q.name != "" {
		path += "/" + q.name
	}
	return path
}

// String says what is asked for: secrets in namespace shop.
func (q *query) String() string {
	text := q.gvr.GroupResource().String()
	if q.name != "" {
		text += " " + q.name
	}
	switch {
	case q.namespace != "":
		return text + " in namespace " + q.namespace
	case q.name == "" && !q.unscoped:
		return text + " in all namespaces"
	}
	return text
}

const (
	asMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// each hands the JSON of all objects of a query to do, page by page. What the user may
// not list, and a kind that is not served, hold none.
func (c *Cluster) each(ctx context.Context, q query, do func(object []byte) error) error {
	next := ""
	for {
		page, err := c.page(ctx, &q, next)
		switch {
		case apierrors.IsResourceExpired(err) && next != "":
			c.miss(q.String(), "only in part: the list took too long to read")
			return nil
		case apierrors.IsForbidden(err):
			c.miss(q.String(), "forbidden")
			return nil
		case apierrors.IsNotFound(err), c.refused(&q, err):
			return nil
		case err != nil:
			return fmt.Errorf("listing %s: %w", q.String(), err)
		}
		for _, object := range page.Items {
			if err := do(object); err != nil {
				return err
			}
		}
		if next = page.Metadata.Continue; next == "" {
			return nil
		}
	}
}

// refused reports whether a query of a group that is not the API server's own was refused, and notes that. An
// aggregated API without a backend, or a definition whose conversion webhook fails, ends no answer about other kinds.
func (c *Cluster) refused(q *query, err error) bool {
	group := q.gvr.Group
	if !refuses(err) || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") {
		return false
	}
	c.miss(q.String(), apiText(err))
	return true
}

// refuses reports whether an error is an answer of the API server.
func refuses(err error) bool {
	var refusal apierrors.APIStatus
	return errors.As(err, &refusal)
}

type page struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []jsontext.Value `json:"items"`
}

func (c *Cluster) page(ctx context.Context, q *query, next string) (*page, error) {
	request := c.client.Get().AbsPath(q.path()).Param("limit", strconv.Itoa(pageSize))
	for name, value := range map[string]string{"continue": next, "labelSelector": q.labels, "fieldSelector": q.fields} {
		if value != "" {
			request.Param(name, value)
		}
	}
	if q.metadata {
		request.SetHeader("Accept", asMetadataList)
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	var read page
	if err := unmarshal(raw, &read); err != nil {
		return nil, fmt.Errorf("it is not a list")
	}
	return &read, nil
}

// one reads one object; nil when there is none, or when the user may not read it, which
// is noted.
func (c *Cluster) one(ctx context.Context, q query) (object []byte, err error) {
	object, forbidden, err := c.look(ctx, q)
	if forbidden {
		c.miss(q.String(), "forbidden")
	}
	return object, err
}

// look reads one object; nil when there is none, or when the user may not read it.
func (c *Cluster) look(ctx context.Context, q query) (object []byte, forbidden bool, err error) {
	object, err = c.get(ctx, q)
	switch {
	case apierrors.IsForbidden(err):
		return nil, true, nil
	case apierrors.IsNotFound(err), c.refused(&q, err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading %s: %w", q.String(), err)
	}
	return object, false, nil
}

// get reads one object; its errors are the API server's.
func (c *Cluster) get(ctx context.Context, q query) ([]byte, error) {
	request := c.client.Get().AbsPath(q.path())
	if q.metadata {
		request.SetHeader("Accept", asMetadata)
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// unmarshal reads what the API server has accepted, by field names with their case.
func unmarshal(raw []byte, into any) error {
	return json.Unmarshal(raw, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
