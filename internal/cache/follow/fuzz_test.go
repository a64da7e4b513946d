package follow

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Frames are read as Kubernetes' own decoders read them, and those of protobuf where they lie.
func TestFramesAreReadAsKubernetesReadsThem(t *testing.T) {
	scheme, err := newScheme(corev1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range serializer.NewCodecFactory(scheme).SupportedMediaTypes() {
		want := metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: []byte(`{"kind":"ConfigMap","data":{"a":"\u00e4 \"}"}}`)}}
		var frame []byte
		switch info.MediaType {
		case runtime.ContentTypeJSON:
			frame, err = json.Marshal(want)
		case runtime.ContentTypeProtobuf:
			frame, err = want.Marshal()
		default:
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, stream := range []*runtime.StreamSerializerInfo{info.StreamSerializer, lean(info).StreamSerializer} {
			var got metav1.WatchEvent
			if obj, _, err := stream.Decode(frame, nil, &got); err != nil || obj != &got || got.Type != want.Type || string(got.Object.Raw) != string(want.Object.Raw) {
				t.Errorf("%s: %v, %+v", info.MediaType, err, got)
			}
			if _, ours := stream.Serializer.(frameDecoder); ours && info.MediaType == runtime.ContentTypeProtobuf && &got.Object.Raw[0] != &frame[len(frame)-len(want.Object.Raw)] {
				t.Error("the object was copied")
			}
			if _, _, err := stream.Decode(frame[:len(frame)-3], nil, &metav1.WatchEvent{}); err == nil {
				t.Errorf("%s: a frame that is cut off is read", info.MediaType)
			}
		}
	}
}

// FuzzRawDecoder: whatever an API server, or a proxy before it, answers, it is
// an error or something that a Reflector can use, and what stands in it is
// handed out once.
func FuzzRawDecoder(f *testing.F) {
	f.Add([]byte(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","resourceVersion":"7"}}`))
	f.Add([]byte(`{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9","continue":"x","remainingItemCount":3},"items":[{"metadata":{"name":"web"}},{"metadata":{"name":"db"}}]}`))
	f.Add([]byte(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`))
	f.Add([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`))
	f.Add([]byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web","resourceVersion":"7"}}`))
	f.Add([]byte(`{"kind":"DeploymentList","items":[null,7,"x",[]]}`))
	f.Add([]byte(`{"metadata":{"annotations":{"a":1}}}`))
	f.Add([]byte(`<html>502 Bad Gateway</html>`))
	scheme, err := newScheme(appsv1.SchemeGroupVersion)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		handed := 0
		decoder := rawDecoder{
			inner: serializer.NewCodecFactory(scheme).UniversalDeserializer(),
			condense: func([]byte) (runtime.Object, error) {
				handed++
				return &metav1.PartialObjectMetadata{}, nil
			},
		}
		obj, _, err := decoder.Decode(data, nil, nil)
		if err != nil {
			return
		}
		if list, ok := obj.(*metav1.List); ok {
			if len(list.Items) != handed {
				t.Fatalf("%d items, %d were handed out", len(list.Items), handed)
			}
			return
		}
		if handed > 1 {
			t.Fatalf("one object was handed out %d times", handed)
		}
		if _, isStatus := obj.(*metav1.Status); isStatus {
			return
		}
		if _, err := meta.Accessor(obj); err != nil && !meta.IsListType(obj) && handed > 0 {
			t.Fatalf("a Reflector cannot use %T: %v", obj, err)
		}
	})
}
