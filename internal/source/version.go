package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/workload/wire"
)

// reader asks the API server for the versions of sources, and reads nothing else of its
// answers. It goes beside client-go's decoders, over its connections.
type reader struct {
	client *http.Client
	base   string    // https://kubernetes.default.svc/api/v1
	bodies sync.Pool // of *bytes.Buffer, wiped
}

func newReader(client *rest.RESTClient) *reader {
	return &reader{client: client.Client, base: client.Get().URL().String()}
}

// What is asked for: objects without their data.
const (
	oneMetadata  = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	manyMetadata = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

var errNoVersion = errors.New("the API server's answer holds no version")

// version reads the resourceVersion of a source, "" when it does not exist. No
// resourceVersion is asked for, so the read is consistent. An error repeats nothing of
// what the API server says.
func (r *reader) version(ctx context.Context, namespace string, source checksum.Source) (string, error) {
	var version string
	err := r.get(ctx, r.path(namespace, source.Kind)+"/"+url.PathEscape(source.Name), oneMetadata, source, func(body []byte) error {
		object, err := wire.Open(body)
		if err != nil {
			return err
		}
		var name string
		name, version, err = versionOf(object.Message)
		if err == nil && (name != source.Name || version == "") {
			err = errNoVersion
		}
		return err
	})
	switch {
	case isAbsent(err, source):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading the version of %s: %w", source, err)
	}
	return version, nil
}

// versions reads the resourceVersions of all sources of a kind in a namespace, by name, at
// one moment: the read is consistent. Helm's release Secrets are left out.
func (r *reader) versions(ctx context.Context, namespace string, kind checksum.Kind) (map[string]string, error) {
	found, next, limit := map[string]string{}, "", firstPage
	for {
		path := r.path(namespace, kind) + "?limit=" + strconv.Itoa(limit)
		if kind == checksum.Secret {
			path += "&fieldSelector=" + url.QueryEscape(notHelm)
		}
		if next != "" {
			path += "&continue=" + url.QueryEscape(next)
		}
		size := 0
		err := r.get(ctx, path, manyMetadata, checksum.Source{Kind: kind}, func(body []byte) (err error) {
			size = len(body)
			next, err = versionsOf(body, found)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("reading the versions of all %s: %w", resourceOf(kind), err)
		}
		if next == "" {
			return found, nil
		}
		limit = min(max(limit*pageBytes/max(size, 1), 1), largestPage)
	}
}

// The first page is of firstPage sources, the next of as many as make about pageBytes, as
// far as the last one tells: annotations may be long, 256 KiB for each, and managedFields
// longer. An answer of more than mostBytes is not read.
const (
	firstPage   = 16
	largestPage = 500
	pageBytes   = 2 << 20
	mostBytes   = 4 << 20
)

func (r *reader) path(namespace string, kind checksum.Kind) string {
	return r.base + "/namespaces/" + url.PathEscape(namespace) + "/" + resourceOf(kind)
}

// get has the body of an answer read that is no refusal. Nothing of it may be kept.
func (r *reader) get(ctx context.Context, path, accept string, source checksum.Source, read func(body []byte) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("Accept", accept)
	response, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body := r.body()
	defer r.forget(body)
	body.Grow(int(min(max(response.ContentLength+bytes.MinRead, usualBody), mostGrown)))
	if _, err := body.ReadFrom(io.LimitReader(response.Body, mostBytes+1)); err != nil {
		return fmt.Errorf("reading the API server's answer: %w", err)
	}
	if body.Len() > mostBytes {
		return fmt.Errorf("the API server's answer is larger than %d bytes", mostBytes)
	}
	if response.StatusCode != http.StatusOK {
		return refused(response, body.Bytes(), source)
	}
	return read(body.Bytes())
}

const (
	// What a body is given room for before it is read.
	usualBody = 4 << 10
	mostGrown = 1 << 20
	// mostKept is the largest room that is kept for the next body.
	mostKept = 64 << 10
)

func (r *reader) body() *bytes.Buffer {
	if body, ok := r.bodies.Get().(*bytes.Buffer); ok {
		return body
	}
	return new(bytes.Buffer)
}

// forget wipes a body: annotations may hold the object as it was last applied, content
// and all.
func (r *reader) forget(body *bytes.Buffer) {
	clear(body.Bytes())
	if body.Cap() > mostKept {
		return
	}
	body.Reset()
	r.bodies.Put(body)
}

// refused is the error that an answer stands for, without its words.
func refused(response *http.Response, body []byte, source checksum.Source) error {
	if status := statusOf(body); status != nil {
		return refusal.Plain(apierrors.FromObject(status))
	}
	retryAfter, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return refusal.Plain(apierrors.NewGenericServerResponse(response.StatusCode, "get",
		schema.GroupResource{Resource: resourceOf(source.Kind)}, source.Name, "", retryAfter, true))
}

// statusOf reads a failure, nil when a body holds none. Some refusals come as JSON,
// whatever was asked for.
func statusOf(body []byte) *metav1.Status {
	var status metav1.Status
	if wire.Is(body) {
		object, err := wire.Open(body)
		if err != nil || object.Kind != "Status" || status.Unmarshal(object.Message) != nil {
			return nil
		}
	} else if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		return nil
	}
	if status.Status != metav1.StatusFailure {
		return nil
	}
	return &status
}

// isAbsent reports whether an error is the API server's own word that a source does not
// exist. A 404 may come from something between us, or be of the path alone.
func isAbsent(err error, source checksum.Source) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &answer) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false
	}
	details := answer.Status().Details
	return details != nil && details.Name == source.Name && details.Kind == resourceOf(source.Kind)
}

// versionOf reads metadata.name and metadata.resourceVersion of any object.
func versionOf(object []byte) (name, version string, err error) {
	err = wire.Each(object, func(number int, metadata []byte) error {
		if number != 1 {
			return nil
		}
		return wire.Each(metadata, func(number int, text []byte) error {
			switch number {
			case 1:
				name = string(text)
			case 6:
				version = string(text)
			}
			return nil
		})
	})
	return name, version, err
}

// versionsOf adds what a page of a list holds, and returns what continues it.
func versionsOf(body []byte, found map[string]string) (next string, err error) {
	list, err := wire.Open(body)
	if err != nil {
		return "", err
	}
	of := metav1.ListMeta{}
	err = wire.Each(list.Message, func(number int, value []byte) error {
		switch number {
		case 1:
			return of.Unmarshal(value)
		case 2:
			name, version, err := versionOf(value)
			if err == nil && (name == "" || version == "") {
				err = errNoVersion
			}
			found[name] = version
			return err
		}
		return nil
	})
	if err == nil && of.ResourceVersion == "" {
		err = errNoVersion
	}
	return of.Continue, err
}
