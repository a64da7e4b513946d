package follow

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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

const acceptProtobuf = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

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
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeProtobuf, acceptProtobuf
	own.NegotiatedSerializer = codecs{serializer.NewCodecFactory(scheme).WithoutConversion(), metadata}
	return restClient(own, gv)
}

// Dynamic makes a client of any kinds of one group and version, in JSON. Its objects are
// *unstructured.Unstructured.
func Dynamic(cfg *rest.Config, gv schema.GroupVersion) (*rest.RESTClient, error) {
	own := dynamic.ConfigFor(cfg)
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // Raw is read as JSON, and never as CBOR
	own.NegotiatedSerializer = codecs{own.NegotiatedSerializer, nil}
	return restClient(own, gv)
}

// NewProtobuf makes a client of one group and version of Kubernetes' own kinds,
// whose types register (corev1.AddToScheme and the like) makes known. It asks for
// protobuf, decodes no object, and hands the message of each, exactly once, to
// condense, with its kind; what condense returns is what callers, watches and lists get.
// condense must not keep message, or parts of it. A server or proxy that answers JSON
// is understood too: those objects are decoded, and written as protobuf, first.
//
//   - An item of a list and the object in a watch event go to condense one by
//     one. A list arrives as *metav1.List whose items hold the result in
//     RawExtension.Object.
//   - A bookmark (an object without a name) does not: it arrives as
//     *metav1.PartialObjectMetadata with resourceVersion and annotations.
//   - *metav1.Status and objects that were asked for as PartialObjectMetadata
//     pass untouched.
//   - An error of condense ends the list or the watch it stands in, and is
//     tried again for ever: rather return an object that tells of the fault.
//
// What condense returns has to carry metav1.Object or ObjectMetaAccessor with
// at least name, namespace and resourceVersion, or a Reflector cannot use it.
// Result.Into does not work on condensed objects (an error says so); use Get.
// Raw bytes are had by Do(ctx), then Error, then Raw; DoRaw drops the API server's
// own words for a refusal. The rate limits of cfg apply as they are: set QPS to -1,
// the default of five requests a second is not enough for anything. From verbosity 8 on
// client-go logs bodies: whoever makes the logger keeps below that.
func NewProtobuf(cfg *rest.Config, gv schema.GroupVersion, register func(*runtime.Scheme) error, condense func(kind string, message []byte) (runtime.Object, error)) (*rest.RESTClient, error) {
	scheme, err := newScheme(gv)
	if err != nil {
		return nil, err
	}
	if err := register(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds of %s: %w", gv, err)
	}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	protobuf, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		return nil, fmt.Errorf("making a client of %s: no serializer for %s", gv, runtime.ContentTypeProtobuf)
	}
	return newClient(cfg, gv, runtime.ContentTypeProtobuf, acceptProtobuf, negotiated{
		NegotiatedSerializer: codecs,
		infos:                allLean(codecs),
		decorate: func(inner runtime.Decoder) runtime.Decoder {
			return protobufDecoder{inner: inner, encoder: codecs.EncoderForVersion(protobuf.Serializer, gv), condense: condense}
		},
	})
}

// NewRaw makes a client of one group and version of any kinds, which hands the
// JSON text of each object, exactly once, to condense. Everything else is as
// NewProtobuf says. condense must not keep data, and has to do without apiVersion
// and kind, which the items of a list may lack.
func NewRaw(cfg *rest.Config, gv schema.GroupVersion, condense func(data []byte) (runtime.Object, error)) (*rest.RESTClient, error) {
	scheme, err := newScheme(gv)
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, fmt.Errorf("making a client of %s: no serializer for %s", gv, runtime.ContentTypeJSON)
	}
	return newClient(cfg, gv, runtime.ContentTypeJSON, runtime.ContentTypeJSON, negotiated{
		NegotiatedSerializer: codecs,
		infos:                []runtime.SerializerInfo{lean(info)},
		decorate: func(inner runtime.Decoder) runtime.Decoder {
			return rawDecoder{inner: inner, condense: condense}
		},
	})
}

// NewEither makes a client of one group and version of Kubernetes' own kinds that asks
// for protobuf, and takes JSON where a server or proxy answers that: message gets what
// NewProtobuf's condense does, text what NewRaw's does. It decodes neither into a Go type,
// so it needs none.
func NewEither(cfg *rest.Config, gv schema.GroupVersion, message, text func([]byte) (runtime.Object, error)) (*rest.RESTClient, error) {
	scheme, err := newScheme(gv)
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	return newClient(cfg, gv, runtime.ContentTypeProtobuf, acceptProtobuf, negotiated{
		NegotiatedSerializer: codecs,
		infos:                allLean(codecs),
		decorate: func(inner runtime.Decoder) runtime.Decoder {
			return eitherDecoder{
				protobufDecoder{inner: inner, condense: func(_ string, object []byte) (runtime.Object, error) { return message(object) }},
				rawDecoder{inner: inner, condense: text},
			}
		},
	})
}

// allLean are the media types of codecs, with streams that keep little (lean).
func allLean(codecs runtime.NegotiatedSerializer) []runtime.SerializerInfo {
	infos := slices.Clone(codecs.SupportedMediaTypes())
	for i := range infos {
		infos[i] = lean(infos[i])
	}
	return infos
}

// newScheme knows what any answer may be beside the kinds of its group: Status,
// and the kinds of meta.k8s.io. client-go's own scheme lacks the latter, is shared
// by the whole process, and a copy of it takes 0.6 MiB.
func newScheme(gv schema.GroupVersion) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, gv)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds of meta.k8s.io: %w", err)
	}
	return scheme, nil
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

func newClient(cfg *rest.Config, gv schema.GroupVersion, contentType, accept string, codecs runtime.NegotiatedSerializer) (*rest.RESTClient, error) {
	own := rest.CopyConfig(cfg)
	own.ContentType = contentType
	own.AcceptContentTypes = accept
	own.NegotiatedSerializer = codecs
	return restClient(own, gv)
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
	// nobody is there any more, TCP finds out as soon: after 45 s.
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

// negotiated decorates the decoders of objects.
type negotiated struct {
	runtime.NegotiatedSerializer
	infos    []runtime.SerializerInfo
	decorate func(runtime.Decoder) runtime.Decoder
}

func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo { return n.infos }

func (n negotiated) DecoderToVersion(decoder runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return n.decorate(n.NegotiatedSerializer.DecoderToVersion(decoder, gv))
}
