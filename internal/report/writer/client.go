package writer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/rollout"
)

// within bounds the requests that one write takes.
const within = 15 * time.Second

// manager is our field manager.
const manager = "configstamp"

// client sends requests. Its errors repeat no word of the API server's.
type client struct{ reports, core rest.Interface }

func newClient(config *rest.Config) (client, error) {
	own := rest.CopyConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return metadataWatch{next} })
	reports, err := follow.Dynamic(own, report.GroupVersion())
	if err != nil {
		return client{}, fmt.Errorf("making a client for reports: %w", err)
	}
	core, err := follow.Dynamic(config, corev1.SchemeGroupVersion)
	if err != nil {
		return client{}, fmt.Errorf("making a client for the metadata of sources: %w", err)
	}
	return client{reports, core}, nil
}

// send sends a request, and returns the answer as it came.
func send(ctx context.Context, what string, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, refusal.Plain(err))
	}
	return result.Raw()
}

// source is what is read of a ConfigMap or Secret. uid is "" if it does not exist.
type source struct {
	uid      string
	editedAt time.Time // when data was last written
	manager  string    // the field manager that wrote it
}

// metadataAlone asks for an object without the rest of it.
const metadataAlone = runtime.ContentTypeJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

func (c *client) source(ctx context.Context, at rollout.SourceRef) (found source, err error) {
	body, err := send(ctx, "GET the metadata of "+at.Source.String(),
		c.core.Get().SetHeader("Accept", metadataAlone).Namespace(at.Namespace).Resource(string(at.Source.Kind)+"s").Name(at.Source.Name))
	if apierrors.IsNotFound(err) {
		return source{}, nil
	}
	if err != nil {
		return source{}, err
	}
	var object struct {
		Metadata struct {
			UID           string                      `json:"uid"`
			ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields"`
		} `json:"metadata"`
	}
	if json.Unmarshal(body, &object) != nil { // an error would quote the object
		return source{}, errors.New("the API server's answer cannot be read")
	}
	found.uid = object.Metadata.UID
	found.editedAt, found.manager = report.LastEdit(object.Metadata.ManagedFields)
	return found, nil
}

// get returns a report, nil if it does not exist.
func (c *client) get(ctx context.Context, at rollout.SourceRef) (*report.ConfigRollout, error) {
	body, err := send(ctx, "GET a report", c.reports.Get().Namespace(at.Namespace).Resource(report.Resource).Name(report.NameOf(at.Source)))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return read(body)
}

func (c *client) create(ctx context.Context, at rollout.SourceRef, uid string) (*report.ConfigRollout, error) {
	kind := report.KindOf(at.Source)
	body, err := json.Marshal(&report.ConfigRollout{
		TypeMeta: metav1.TypeMeta{APIVersion: report.GroupVersion().String(), Kind: report.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: at.Namespace, Name: report.NameOf(at.Source),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: at.Source.Name, UID: types.UID(uid)}},
		},
		Spec: report.Spec{Source: report.Source{Kind: kind, Name: at.Source.Name}},
	})
	if err != nil {
		return nil, err
	}
	body, err = send(ctx, "POST a report", c.reports.Post().Namespace(at.Namespace).Resource(report.Resource).Param("fieldManager", manager).Body(body))
	if err != nil {
		return nil, err
	}
	return read(body)
}

// update writes the status of a report, and returns its version.
func (c *client) update(ctx context.Context, object *report.ConfigRollout) (version string, err error) {
	body, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	body, err = send(ctx, "PUT the status of a report", c.reports.Put().Namespace(object.Namespace).Resource(report.Resource).Name(object.Name).
		SubResource("status").Param("fieldManager", manager).Body(body))
	if err != nil {
		return "", err
	}
	is, err := read(body)
	if err != nil {
		return "", err
	}
	return is.ResourceVersion, nil
}

func read(body []byte) (*report.ConfigRollout, error) {
	object, err := report.Read(body)
	if err != nil {
		return nil, errors.New("the API server's answer is not a ConfigRollout")
	}
	return object, nil
}
