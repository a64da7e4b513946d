package source

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// canned answers each watch with what an API server sends at its beginning.
type canned map[string][]byte

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	body := struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(c[resource]), open{r.Context()}), io.NopCloser(nil)}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf + ";stream=watch"}}, Body: body, Request: r}, nil
}

// open is the end of a stream that does not end.
type open struct{ context.Context }

func (o open) Read([]byte) (int, error) {
	<-o.Done()
	return 0, io.EOF
}

// stream is a watch that begins with n Secrets of a size.
func stream(b *testing.B, n, size int) []byte {
	var all bytes.Buffer
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	event := func(kind string, obj runtime.Object) {
		obj.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		raw, err := runtime.Encode(serializer, obj)
		if err != nil {
			b.Fatal(err)
		}
		frame, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}}).Marshal()
		if err != nil {
			b.Fatal(err)
		}
		all.Write(binary.BigEndian.AppendUint32(nil, uint32(len(frame))))
		all.Write(frame)
	}
	value := make([]byte, size)
	random := rand.NewChaCha8([32]byte{})
	for i := range n {
		_, _ = random.Read(value)
		event("ADDED", &corev1.Secret{Data: map[string][]byte{"password": value}, Type: corev1.SecretTypeOpaque, ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%05d", i), Namespace: fmt.Sprint("team-", i%100), ResourceVersion: fmt.Sprint(1000 + i), UID: "0f5f5a7e-5d5b-4d33-8cf3-6d0b8cb1a9a1", CreationTimestamp: metav1.Unix(1e9, 0),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Update", APIVersion: "v1", Time: &metav1.Time{Time: time.Unix(1e9, 0)}, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{},"f:password":{}},"f:type":{}}`)}},
		}})
	}
	event("BOOKMARK", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(1000 + n), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	return all.Bytes()
}

// BenchmarkStart fills a Store from a watch: what a start costs, TLS and HTTP aside. The
// figures are of one Secret, of which there are 2,000.
func BenchmarkStart(b *testing.B) {
	const n = 2000
	for _, size := range []int{2 << 10, 20 << 10} {
		b.Run(fmt.Sprintf("%d KiB", size>>10), func(b *testing.B) {
			server := canned{"secrets": stream(b, n, size), "configmaps": stream(b, 0, 0)}
			b.ReportAllocs()
			for b.Loop() {
				store, err := NewStore(&rest.Config{Host: "http://api", QPS: -1, Transport: server}, Options{})
				if err != nil {
					b.Fatal(err)
				}
				ctx, cancel := context.WithCancel(b.Context())
				done := make(chan error)
				go func() { done <- store.Run(ctx) }()
				for !store.HasSynced() {
					time.Sleep(100 * time.Microsecond)
				}
				if counts := store.Counts()["secret"]; counts != n {
					b.Fatalf("%d Secrets", counts)
				}
				cancel()
				<-done
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/secret")
		})
	}
}
