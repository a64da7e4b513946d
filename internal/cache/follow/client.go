package follow

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/refusal"
)

// Typed makes a client of Kubernetes' own kinds of one group and version, whose types register
// makes known (corev1.AddToScheme and the like). It asks for protobuf and reads JSON too, which
// a server or a proxy may answer instead. client-go's clientset does the same, and links every
// group of the API.
//
// Do(ctx).Error and then Raw return the bytes of an answer; DoRaw drops the API server's own
// words for a refusal. The rate limits of cfg apply as they are: set QPS to -1, since the default
// of five requests a second is not enough. From verbosity 8 on client-go logs bodies: the logger
// has to stay below that.
func Typed(cfg *rest.Config, gv schema.GroupVersion, register func(*runtime.Scheme) error) (*rest.RESTClient, error) {
	return newTyped(cfg, gv, register, nil)
}

// TypedOrMetadata is Typed for watches that no single object may end: an object that cannot be
// decoded is returned as its *metav1.PartialObjectMetadata.
func TypedOrMetadata(cfg *rest.Config, gv schema.GroupVersion, register func(*runtime.Scheme) error) (*rest.RESTClient, error) {
	return newTyped(cfg, gv, register, serializer.NewCodecFactory(runtime.NewScheme()).UniversalDeserializer())
}

func newTyped(cfg *rest.Config, gv schema.GroupVersion, register func(*runtime.Scheme) error, metadata runtime.Decoder) (*rest.RESTClient, error) {
	// client-go's own scheme has every group, and a copy of it takes 0.6 MiB.
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	metav1.AddToGroupVersion(scheme, gv)
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds of meta.k8s.io: %w", err)
	}
	if err := register(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds of %s: %w", gv, err)
	}
	own := rest.CopyConfig(cfg)
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	own.NegotiatedSerializer = codecs{serializer.NewCodecFactory(scheme).WithoutConversion(), scheme, metadata}
	return restClient(own, gv)
}

// Dynamic makes a client of any kinds of one group and version, in JSON. Its objects are
// *unstructured.Unstructured.
func Dynamic(cfg *rest.Config, gv schema.GroupVersion) (*rest.RESTClient, error) {
	own := dynamic.ConfigFor(cfg)
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // Raw is read as JSON, and never as CBOR
	own.NegotiatedSerializer = codecs{own.NegotiatedSerializer, nil, nil}
	return restClient(own, gv)
}

// List sends a request of a Dynamic client for a list, and returns the items as JSON
// (RawExtension.Raw). Its errors repeat no word of the API server's.
func List(ctx context.Context, request *rest.Request) (*metav1.List, error) {
	list := &metav1.List{}
	if err := request.Do(ctx).Into(list); err != nil {
		return nil, refusal.Plain(err)
	}
	if !strings.HasSuffix(list.Kind, "List") { // its items would be missing, and not absent
		return nil, errors.New("the API server's answer is no list")
	}
	return list, nil
}

// restClient makes a client of own, which it may change.
func restClient(own *rest.Config, gv schema.GroupVersion) (*rest.RESTClient, error) {
	own.GroupVersion = &gv
	own.APIPath = "/apis"
	if gv.Group == "" {
		own.APIPath = "/api"
	}
	// The API server would compress the beginning of a watch and large pages, for more CPU
	// on both ends than all else that it does for them.
	own.DisableCompression = true
	// HTTP/2 takes what is sent up to 4 MiB before it is read. Here each watch has
	// a connection, and TCP has the server wait. What HTTP/2 finds out by pings, that
	// the other end is gone, TCP finds out as soon: after 45 s.
	own.NextProtos = []string{"http/1.1"}
	if own.Dial == nil {
		own.Dial = (&net.Dialer{
			Timeout:         30 * time.Second,
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3},
		}).DialContext
	}
	client, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", gv, err)
	}
	return client, nil
}
