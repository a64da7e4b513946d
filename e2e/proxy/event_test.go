package proxy_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/configstamp/configstamp/e2e/proxy"
)

// serveWatch writes events in the encoding that the client asks for, as an API
// server does.
func serveWatch(t *testing.T, say <-chan watch.Event) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		mediaType := runtime.ContentTypeJSON
		if strings.Contains(r.Header.Get("Accept"), "protobuf") {
			mediaType = runtime.ContentTypeProtobuf
		}
		info, _ := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), mediaType)
		w.Header().Set("Content-Type", mediaType+";stream=watch")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		codec := clientgoscheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
		for {
			select {
			case <-r.Context().Done():
				return
			case event := <-say:
				raw, err := runtime.Encode(codec, event.Object)
				if err != nil {
					t.Error(err)
					return
				}
				outer := &metav1.WatchEvent{Type: string(event.Type), Object: runtime.RawExtension{Raw: raw}}
				frame, err := json.Marshal(outer)
				if mediaType == runtime.ContentTypeProtobuf {
					frame, err = outer.Marshal()
					frame = append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
				} else {
					frame = append(frame, '\n')
				}
				if err != nil {
					t.Error(err)
				}
				_, _ = w.Write(frame)
				w.(http.Flusher).Flush()
			}
		}
	}
}

func TestEventsAreHiddenRepeatedAndExpiredInBothEncodings(t *testing.T) {
	for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(mediaType, func(t *testing.T) {
			say := make(chan watch.Event)
			p, client := front(t, serveWatch(t, say))
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+"/api/v1/configmaps?watch=true", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Accept", mediaType)
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			info, _ := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), mediaType)
			decoder := clientgoscheme.Codecs.UniversalDeserializer()
			events := restwatch.NewDecoder(streaming.NewDecoder(info.StreamSerializer.NewFrameReader(response.Body), info.StreamSerializer), decoder)
			next := func() (watch.EventType, runtime.Object) {
				t.Helper()
				kind, object, err := events.Decode()
				if err != nil {
					t.Fatal(err)
				}
				return kind, object
			}
			send := func(kind watch.EventType, name string, version int) {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: fmt.Sprint(version)}, Data: map[string]string{"k": "v"}}
				object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
				say <- watch.Event{Type: kind, Object: object}
			}
			want := func(kind watch.EventType, version int) {
				t.Helper()
				got, object := next()
				if configMap := object.(*corev1.ConfigMap); got != kind || configMap.ResourceVersion != fmt.Sprint(version) {
					t.Fatalf("%s at %s, want %s at %d", got, configMap.ResourceVersion, kind, version)
				}
			}
			send(watch.Added, "a", 1)
			want(watch.Added, 1)
			var first *proxy.Event
			p.Add(proxy.Rule{Match: proxy.Matching("watch", "configmaps"), Event: func(_ *proxy.Request, event *proxy.Event) []*proxy.Event {
				switch {
				case event.Name == "hidden", event.Type == watch.Bookmark:
					return nil
				case first == nil:
					first = event
					return []*proxy.Event{event}
				}
				return []*proxy.Event{first, event}
			}})
			send(watch.Modified, "a", 2)
			want(watch.Modified, 2)
			send(watch.Modified, "hidden", 3)
			send(watch.Bookmark, "", 4)
			send(watch.Deleted, "a", 5)
			want(watch.Modified, 2)
			want(watch.Deleted, 5)
			if expired := p.Expire(nil); expired != 1 {
				t.Errorf("%d watches expired, want 1", expired)
			}
			kind, object := next()
			if status, ok := object.(*metav1.Status); kind != watch.Error || !ok || status.Code != http.StatusGone {
				t.Errorf("%s %v, want an error of code 410", kind, object)
			}
			if _, err := io.ReadAll(response.Body); err != nil {
				t.Errorf("the watch ends with %v", err)
			}
		})
	}
}
