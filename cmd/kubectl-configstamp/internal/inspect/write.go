package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/workload"
)

// Target is one object that a person's order is about.
type Target struct {
	gvr             schema.GroupVersionResource
	namespace, name string
	text            string
	kind            *workload.Kind // of a workload
}

// OfWorkload is a workload.
func OfWorkload(ref workload.Ref) Target {
	return Target{ref.Kind.GroupVersionResource(), ref.Namespace, ref.Name, seen.Text(ref), ref.Kind}
}

// OfNamespace is a Namespace itself.
func OfNamespace(name string) Target {
	return Target{gvr: v1("", "namespaces"), name: name, text: "namespace/" + name}
}

// OfSource is a source.
func OfSource(namespace string, source checksum.Source) Target {
	return Target{gvr: SourceResource(source.Kind), namespace: namespace, name: source.Name, text: source.String()}
}

// Namespace is "" for a Namespace itself.
func (t Target) Namespace() string { return t.namespace }

// String names it as kubectl does: deployment/web, namespace/shop.
func (t Target) String() string { return t.text }

// Metadata is what is read of an object before one of its annotations is changed.
type Metadata struct {
	Version     string
	Annotations map[string]string
	all         metadata
}

// Writer is who wrote an annotation last, as far as managedFields tell.
func (m *Metadata) Writer(annotation string) seen.Write { return m.all.writer(annotation) }

// Applier is who has an annotation in what it applies, "" for nobody that is known: whatever
// is written here, it may write that again.
func (m *Metadata) Applier(annotation string) string { return m.all.applier(annotation) }

// Metadata reads the metadata of an object; the errors are the API server's.
func (c *Cluster) Metadata(ctx context.Context, of Target) (*Metadata, error) {
	raw, err := c.get(ctx, query{gvr: of.gvr, namespace: of.namespace, name: of.name, metadata: true})
	if err != nil {
		return nil, err
	}
	meta := metadataOf(raw)
	return &Metadata{meta.Version, meta.Annotations, meta}, nil
}

// Patch is one patch, sent with the rights of the user.
type Patch struct {
	Of   Target
	Body []byte
	// Type is how Body is to be read; "" is a merge patch.
	Type types.PatchType
	// Manager is the field manager; "" names none.
	Manager string
	// Dry has the API server do all but store it.
	Dry bool
}

// Patch sends a patch of a source or a Namespace, or of a workload that is not read. The
// webhooks' warnings are returned; the errors are the API server's.
func (c *Cluster) Patch(ctx context.Context, p Patch) (warnings []string, err error) {
	_, warnings, err = c.patch(ctx, &p, asMetadata)
	return warnings, err
}

// PatchWorkload sends a patch of a workload, and reads what it is then.
func (c *Cluster) PatchWorkload(ctx context.Context, settings *seen.Settings, p Patch) (after *seen.Workload, warnings []string, err error) {
	raw, warnings, err := c.patch(ctx, &p, "application/json")
	if err != nil {
		return nil, warnings, err
	}
	after, err = read(settings, p.Of.kind, raw)
	return after, warnings, err
}

func (c *Cluster) patch(ctx context.Context, p *Patch, accept string) (raw []byte, warnings []string, err error) {
	q := query{gvr: p.Of.gvr, namespace: p.Of.namespace, name: p.Of.name}
	request := c.client.Patch(cmp.Or(p.Type, types.MergePatchType)).AbsPath(q.path()).SetHeader("Accept", accept).Body(p.Body)
	if p.Manager != "" {
		request.Param("fieldManager", p.Manager)
	}
	if p.Dry {
		request.Param("dryRun", "All")
	}
	result := request.Do(ctx)
	for _, warning := range result.Warnings() {
		warnings = append(warnings, warning.Text)
	}
	if err := result.Error(); err != nil {
		return nil, warnings, err
	}
	raw, err = result.Raw()
	return raw, warnings, err
}

// WhoAmI is the name that the API server has for the user; "" where it does not tell.
func (c *Cluster) WhoAmI(ctx context.Context) string {
	body := []byte(`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`)
	raw, err := c.client.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").Body(body).Do(ctx).Raw()
	var review struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	if err != nil || json.Unmarshal(raw, &review) != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// Time is what the API server's clock showed at its newest answer, in whole seconds, UTC.
// An error tells that it has not said so.
func (c *Cluster) Time() (time.Time, error) {
	seconds := c.date.Load()
	if seconds == 0 {
		return time.Time{}, fmt.Errorf("the API server does not tell its time (there is no header Date)")
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// dated notes the time of answers, in seconds since 1970.
type dated struct {
	http.RoundTripper
	date *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (d dated) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.RoundTripper.RoundTrip(request)
	if err == nil {
		if at, parsed := http.ParseTime(response.Header.Get("Date")); parsed == nil {
			d.date.Store(at.Unix())
		}
	}
	return response, err
}

// IsConflict tells that somebody else has changed the object meanwhile.
func IsConflict(err error) bool { return apierrors.IsConflict(err) }

// Refusal says why an order was refused, on one line.
func Refusal(of Target, err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("you have no right to change %s: %s", of, apiText(err))
	case apierrors.IsNotFound(err):
		return of.String() + " does not exist"
	}
	return apiText(err)
}
