package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/refusal"
)

// reader asks the API server for the versions of sources. It repeats no request: the time for an
// answer is short, and another way to it is tried instead.
type reader struct{ client rest.Interface }

// The Accept headers of requests for objects without their data.
const (
	asMetadata     = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetadataList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	oneMetadata    = runtime.ContentTypeProtobuf + asMetadata + "," + runtime.ContentTypeJSON + asMetadata
	manyMetadata   = runtime.ContentTypeProtobuf + asMetadataList + "," + runtime.ContentTypeJSON + asMetadataList
)

var errNoVersion = errors.New("the API server's answer holds no version")

// version reads the resourceVersion of a source, "" when it does not exist. No
// resourceVersion is asked for, so the read is consistent. An error repeats nothing of
// what the API server says.
func (r *reader) version(ctx context.Context, namespace string, source checksum.Source) (string, error) {
	answer, err := r.client.Get().Namespace(namespace).Resource(resourceOf(source.Kind)).Name(source.Name).
		SetHeader("Accept", oneMetadata).MaxRetries(0).Do(ctx).Get()
	if err = refusal.Plain(err); isAbsent(err, source) {
		return "", nil
	}
	if err == nil {
		var name, version string
		if name, version, err = versionOf(answer); err == nil && name == source.Name {
			return version, nil
		}
		err = errNoVersion
	}
	return "", fmt.Errorf("reading the version of %s: %w", source, err)
}

// The first page is of firstPage sources, the next of as many as make about pageBytes, as
// far as the last one shows: annotations may be long, 256 KiB for each, and managedFields
// longer. An answer of more than mostBytes is not read.
const (
	firstPage   = 16
	largestPage = 500
	pageBytes   = 2 << 20
	mostBytes   = 4 << 20
)

// versions reads the resourceVersions of all sources of a kind in a namespace, by name, at
// one moment: the read is consistent. Helm's release Secrets are left out.
func (r *reader) versions(ctx context.Context, namespace string, kind checksum.Kind) (map[string]string, error) {
	found, options := map[string]string{}, metav1.ListOptions{Limit: firstPage}
	if kind == checksum.Secret {
		options.FieldSelector = notHelm
	}
	for {
		size, err := r.page(ctx, namespace, kind, &options, found)
		if err != nil {
			return nil, fmt.Errorf("reading the versions of all %s: %w", resourceOf(kind), err)
		}
		if options.Continue == "" {
			return found, nil
		}
		options.Limit = min(max(options.Limit*pageBytes/int64(max(size, 1)), 1), largestPage)
	}
}

// page adds the versions of one page to found, and sets options to continue after it. It returns
// the size of the page in bytes.
func (r *reader) page(ctx context.Context, namespace string, kind checksum.Kind, options *metav1.ListOptions, found map[string]string) (size int, err error) {
	answer := r.client.Get().Namespace(namespace).Resource(resourceOf(kind)).VersionedParams(options, metav1.ParameterCodec).
		SetHeader("Accept", manyMetadata).MaxRetries(0).Do(ctx)
	list, err := answer.Get()
	if err != nil {
		return 0, refusal.Plain(err)
	}
	of, err := meta.ListAccessor(list)
	if err != nil || of.GetResourceVersion() == "" {
		return 0, errNoVersion
	}
	options.Continue = of.GetContinue()
	err = meta.EachListItem(list, func(item runtime.Object) error {
		name, version, err := versionOf(item)
		found[name] = version
		return err
	})
	body, _ := answer.Raw()
	return len(body), err
}

// bounded reads no more than mostBytes of an answer to a request for metadata.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil && strings.Contains(request.Header.Get("Accept"), ";as=PartialObjectMetadata") {
		response.Body = http.MaxBytesReader(nil, response.Body, mostBytes)
	}
	return response, err
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

// versionOf returns the name and the resourceVersion of an object, both of which every object has.
func versionOf(object runtime.Object) (name, version string, err error) {
	of, err := meta.Accessor(object)
	if err != nil || of.GetName() == "" || of.GetResourceVersion() == "" {
		return "", "", errNoVersion
	}
	return of.GetName(), of.GetResourceVersion(), nil
}
