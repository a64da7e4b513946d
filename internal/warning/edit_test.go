package warning

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/admission"
)

// What is read of an object is what package checksum makes of it.
func TestContents(t *testing.T) {
	object := configMap(map[string]string{"z": "", "plain": "a text", "escaped": "\"\\\n\t\u2028<&>\x00", "unicode": "ä€😀", "big": strings.Repeat("x\n", 1<<18)})
	object.BinaryData = map[string][]byte{"a": {}, "bytes": {0, 1, 2, 255}, "big-bytes": bytes.Repeat([]byte{7, 0}, 1<<18)}
	object.Annotations = map[string]string{"configstamp.dev/ignore-keys": "build-*", "reloader.stakater.com/match": "true", "team": "a"}
	sealed := &corev1.Secret{ObjectMeta: object.ObjectMeta, Data: object.BinaryData, Type: corev1.SecretTypeOpaque}
	for want, request := range map[*checksum.Content]any{checksum.ContentOfConfigMap(object): object, checksum.ContentOfSecret(sealed): sealed} {
		edit, err := editOf(asks(t, request, nil), new(bytes.Buffer))
		if err != nil {
			t.Fatal(err)
		}
		if !edit.Was.Equal(want) || edit.Is != nil {
			t.Errorf("%T: %v %v, want %v", request, edit.Was, edit.Was.Policy, want.Policy)
		}
		for i := range want.Entries {
			if edit.Was.Entries[i] != want.Entries[i] {
				t.Errorf("%T: %s differs", request, want.Entries[i].Name)
			}
		}
	}
}

// A name decides which of two edits differ, and the kind of a key.
func TestEdits(t *testing.T) {
	was := configMap(map[string]string{"a": "1"})
	moved := configMap(nil)
	moved.BinaryData = map[string][]byte{"a": []byte("1")}
	says := was.DeepCopy()
	says.Annotations = map[string]string{"configstamp.dev/ignore": "true"}
	for about, c := range map[string]struct {
		is   any
		want bool
	}{
		"the same": {was, false}, "another value": {configMap(map[string]string{"a": "2"}), true}, "another key": {configMap(map[string]string{"b": "1"}), true},
		"binary": {moved, true}, "it says something else of itself": {says, true}, "empty": {configMap(nil), true},
	} {
		edit, err := editOf(asks(t, was, c.is), new(bytes.Buffer))
		if err != nil || (edit != nil) != c.want {
			t.Errorf("%s: %v, %v", about, edit, err)
		}
	}
}

func TestTheDeletionOfWhatIsImmutable(t *testing.T) {
	for _, immutable := range []bool{true, false} {
		was := configMap(map[string]string{"a": "1"})
		was.Immutable = &immutable
		request := asks(t, was, nil)
		if edit, err := editOf(request, new(bytes.Buffer)); err != nil || edit.Immutable != immutable || edit.Is != nil {
			t.Errorf("%v, %v", edit, err)
		}
	}
}

// Memory is bounded by bytes: keys take more than they are long.
func TestManyKeys(t *testing.T) {
	data := map[string]string{}
	for n := range mostKeys {
		data[fmt.Sprint(n)] = ""
	}
	if _, err := editOf(asks(t, configMap(data), nil), new(bytes.Buffer)); err != nil {
		t.Error(err)
	}
	data["one-more"] = ""
	if _, err := editOf(asks(t, configMap(data), nil), new(bytes.Buffer)); err == nil {
		t.Error("it was read")
	}
}

// go test ./internal/warning -run '^$' -fuzz FuzzReview -fuzztime 1m
//
// Whatever comes is no review, or is judged without a panic. (A goroutine, as ServeHTTP has
// one, covers other code each time, which the fuzzer takes for news.)
func FuzzReview(f *testing.F) {
	object := configMap(map[string]string{"a": "1"})
	f.Add(review(f, asks(f, object, configMap(map[string]string{"a": "2"}))))
	f.Add(review(f, asks(f, object, nil)))
	f.Add(review(f, asks(f, &corev1.Secret{ObjectMeta: object.ObjectMeta, Data: map[string][]byte{"a": {1}}}, nil)))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"DELETE","resource":{"resource":"secrets"},"oldObject":{"metadata":{"name":"a"},"data":{"a":"\\"}}}}`))
	h, ctx := newHandler(&fate{answer: oneRolls}), silent(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, Path, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		request, _, err := admission.Read(httptest.NewRecorder(), r, new(bytes.Buffer))
		if err != nil {
			return
		}
		if said := h.judge(ctx, request); said.result == panicked || (said.result == warned) != (len(said.warnings) > 0) {
			t.Errorf("%s: %q", said.result, said.warnings)
		}
	})
}
