package warning

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/impact"
)

var oneRolls = impact.Answer{Rolls: rolls("deployment/web"), First: 1}

// Whatever is asked, it is allowed; and what is no edit of content is not even looked at.
func TestReviews(t *testing.T) {
	changed := func(change func(*admissionv1.AdmissionRequest)) *admissionv1.AdmissionRequest {
		request := asks(t, configMap(map[string]string{"a": "1"}), configMap(map[string]string{"a": "2"}))
		change(request)
		return request
	}
	annotated := configMap(map[string]string{"a": "1"})
	annotated.Annotations = map[string]string{"team": "b"}
	annotated.Labels = map[string]string{"team": "b"}
	annotated.Finalizers = []string{"example.com/keep"}
	ending := annotated.DeepCopy()
	ending.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
	release := &corev1.Secret{ObjectMeta: annotated.ObjectMeta, Type: checksum.HelmReleaseType, Data: map[string][]byte{"release": []byte("1")}}
	other := release.DeepCopy()
	other.Data["release"] = []byte("2")
	for about, c := range map[string]struct {
		request *admissionv1.AdmissionRequest
		fate    fate
		want    result
		asks    int
	}{
		"an edit":                    {changed(func(*admissionv1.AdmissionRequest) {}), fate{answer: oneRolls}, warned, 1},
		"an edit that rolls nothing": {changed(func(*admissionv1.AdmissionRequest) {}), fate{}, quiet, 1},
		"a dry run":                  {changed(func(r *admissionv1.AdmissionRequest) { dry := true; r.DryRun = &dry }), fate{answer: oneRolls}, warned, 1},
		"caches are not full":        {changed(func(*admissionv1.AdmissionRequest) {}), fate{answer: oneRolls, notReady: true}, notReady, 1},
		"it panics":                  {changed(func(*admissionv1.AdmissionRequest) {}), fate{panics: secret}, panicked, 1},
		"a deletion":                 {asks(t, annotated, nil), fate{answer: oneRolls}, warned, 1},
		"a deletion, a second time":  {asks(t, ending, nil), fate{answer: oneRolls}, quiet, 0},
		"labels, annotations":        {asks(t, configMap(map[string]string{"a": "1"}), annotated), fate{answer: oneRolls}, quiet, 0},
		"a finalizer goes":           {asks(t, ending, configMap(map[string]string{"a": "1"})), fate{answer: oneRolls}, quiet, 0},
		"a creation":                 {changed(func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Create }), fate{answer: oneRolls}, quiet, 0},
		"a connection":               {changed(func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Connect }), fate{answer: oneRolls}, quiet, 0},
		"another resource":           {changed(func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "pods" }), fate{answer: oneRolls}, quiet, 0},
		"another group":              {changed(func(r *admissionv1.AdmissionRequest) { r.Resource.Group = "example.com" }), fate{answer: oneRolls}, quiet, 0},
		"a subresource":              {changed(func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" }), fate{answer: oneRolls}, quiet, 0},
		"a release of Helm's":        {asks(t, release, other), fate{answer: oneRolls}, quiet, 0},
		"no old object":              {changed(func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = nil }), fate{answer: oneRolls}, unreadable, 0},
		"no object":                  {changed(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }), fate{answer: oneRolls}, unreadable, 0},
		"an object that is a list":   {changed(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`[]`) }), fate{answer: oneRolls}, unreadable, 0},
		"data that is a list": {changed(func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(`{"metadata":{"name":"config"},"data":[]}`)
		}), fate{answer: oneRolls}, unreadable, 0},
		"a value that is a number": {changed(func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(`{"metadata":{"name":"config"},"data":{"a":1}}`)
		}), fate{answer: oneRolls}, unreadable, 0},
		"binary data that is none": {changed(func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(`{"metadata":{"name":"config"},"binaryData":{"a":"?"}}`)
		}), fate{answer: oneRolls}, unreadable, 0},
		"an object without a name": {changed(func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = []byte(`{"data":{"a":"2"}}`) }), fate{answer: oneRolls}, unreadable, 0},
		"data that is null": {changed(func(r *admissionv1.AdmissionRequest) {
			r.Object.Raw = []byte(`{"metadata":{"name":"config"},"data":null}`)
		}), fate{answer: oneRolls}, warned, 1},
		"a request without a name": {changed(func(r *admissionv1.AdmissionRequest) { r.Name = "" }), fate{answer: oneRolls}, warned, 1},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHandler(&c.fate)
				warnings := allowed(t, post(silent(t), h, review(t, c.request)))
				if want := (map[result]int{c.want: 1}); !maps.Equal(h.counted(), want) {
					t.Errorf("counted %v, want %v", h.counted(), want)
				}
				if (len(warnings) > 0) != (c.want == warned) || len(c.fate.asked) != c.asks {
					t.Errorf("warnings %q, asked %d times", warnings, len(c.fate.asked))
				}
				for _, edit := range c.fate.asked {
					if edit.At != edited.At {
						t.Errorf("asked of %v", edit.At)
					}
				}
			})
		})
	}
}

// Of what is out of scope nothing is read, whatever it is: it comes from somebody who is not the
// API server.
func TestOutOfScope(t *testing.T) {
	edit := func(object any, namespace string) *admissionv1.AdmissionRequest {
		request := asks(t, object, nil)
		request.Namespace, request.OldObject.Raw = namespace, []byte(`"cannot be read"`)
		return request
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "config"}}
	for about, c := range map[string]struct {
		request *admissionv1.AdmissionRequest
		want    result
	}{
		"a Secret":             {edit(secret, "shop"), quiet},
		"an excluded one":      {edit(configMap(nil), "kube-system"), quiet},
		"one that is in scope": {edit(configMap(nil), "shop"), unreadable},
	} {
		h := newHandler(&fate{answer: oneRolls}, "configmaps")
		warnings := allowed(t, post(silent(t), h, review(t, c.request)))
		if want := (map[result]int{c.want: 1}); !maps.Equal(h.counted(), want) || len(warnings) > 0 {
			t.Errorf("%s: counted %v, want %v; %q", about, h.counted(), want, warnings)
		}
	}
}

// What is no review gets an HTTP error: the API server goes on without us.
func TestNoReviews(t *testing.T) {
	good := string(review(t, asks(t, configMap(nil), configMap(map[string]string{"a": "2"}))))
	for about, c := range map[string]struct {
		method, body string
		length       int64
		want         int
	}{
		"a GET":        {http.MethodGet, "", 0, http.StatusMethodNotAllowed},
		"no JSON":      {http.MethodPost, "{", 1, http.StatusBadRequest},
		"two objects":  {http.MethodPost, strings.Replace(good, `"object":{`, `"object":{},"object":{`, 1), int64(len(good)) + 12, http.StatusBadRequest},
		"a huge one":   {http.MethodPost, good + strings.Repeat(" ", admission.MaxBytes), -1, http.StatusRequestEntityTooLarge},
		"no uid":       {http.MethodPost, strings.Replace(good, `"uid":"1"`, `"uid":""`, 1), int64(len(good)) - 1, http.StatusBadRequest},
		"not in a uid": {http.MethodPost, strings.Replace(good, `"request"`, `"question"`, 1), int64(len(good)) + 1, http.StatusBadRequest},
	} {
		h := newHandler(&fate{answer: oneRolls})
		r := httptest.NewRequestWithContext(silent(t), c.method, Path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = c.length
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want || !maps.Equal(h.counted(), map[result]int{unreadable: 1}) {
			t.Errorf("%s: %d, counted %v", about, w.Code, h.counted())
		}
	}
}

// An answer comes before the API server gives up. What comes too late has its room until then:
// the request lasts as long.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fate{answer: oneRolls, waits: make(chan struct{})}
		h := newHandler(f)
		body := review(t, asks(t, configMap(nil), configMap(map[string]string{"a": "2"})))
		r := httptest.NewRequestWithContext(silent(t), http.MethodPost, Path+"?timeout=1s", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w, ended := httptest.NewRecorder(), make(chan struct{})
		go func() {
			defer close(ended)
			h.ServeHTTP(w, r)
		}()
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if warnings := allowed(t, w); len(warnings) > 0 || !w.Flushed {
			t.Errorf("%q, sent: %t", warnings, w.Flushed)
		}
		select {
		case <-ended:
			t.Error("the request is over, though its edit is still looked at")
		default:
		}
		close(f.waits)
		<-ended
		if want := (map[result]int{late: 1}); !maps.Equal(h.counted(), want) {
			t.Errorf("counted %v", h.counted())
		}
	})
}

// What the server refuses is counted, too.
func TestRefused(t *testing.T) {
	h := newHandler(&fate{})
	h.refused(http.StatusServiceUnavailable)
	h.refused(http.StatusLengthRequired)
	h.refused(http.StatusRequestEntityTooLarge)
	if want := (map[result]int{busy: 1, unreadable: 2}); !maps.Equal(h.counted(), want) {
		t.Errorf("counted %v", h.counted())
	}
}

// Content is neither in an answer, nor in a log of any verbosity, nor kept in memory.
func TestNothingLeaks(t *testing.T) {
	escaped := secret + "\n" + secret
	object := configMap(map[string]string{"a": secret, "b": escaped})
	object.BinaryData = map[string][]byte{"c": []byte(secret)}
	object.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": secret}
	other := object.DeepCopy()
	other.Data["a"] += secret
	sealed := &corev1.Secret{ObjectMeta: object.ObjectMeta, Data: map[string][]byte{"a": []byte(secret)}}
	opened := sealed.DeepCopy()
	opened.Data["a"] = []byte(escaped)
	for about, c := range map[string]struct {
		request *admissionv1.AdmissionRequest
		fate    fate
		spoil   [2]string
	}{
		"a ConfigMap":           {asks(t, object, other), fate{answer: oneRolls}, [2]string{}},
		"a Secret":              {asks(t, sealed, opened), fate{answer: oneRolls}, [2]string{}},
		"a deletion":            {asks(t, sealed, nil), fate{answer: oneRolls}, [2]string{}},
		"it panics":             {asks(t, object, other), fate{panics: secret}, [2]string{}},
		"a value of wrong form": {asks(t, object, other), fate{}, [2]string{`"a":"` + secret + secret + `"`, `"a":{"` + secret + `":1}`}},
		"no base64":             {asks(t, object, other), fate{}, [2]string{`"c":"`, `"c":"?` + secret}},
		"a wrong name":          {asks(t, object, other), fate{}, [2]string{`"metadata":{"name":"config"`, `"metadata":{"name":{"` + secret + `":1}`}},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHandler(&c.fate)
				body := review(t, c.request)
				if c.spoil[0] != "" {
					if !bytes.Contains(body, []byte(c.spoil[0])) {
						t.Fatalf("no %s in %s", c.spoil[0], body)
					}
					body = bytes.ReplaceAll(body, []byte(c.spoil[0]), []byte(c.spoil[1]))
				}
				ctx, log := captured(t)
				w := post(ctx, h, body)
				allowed(t, w)
				if strings.Contains(log.String(), secret) || strings.Contains(w.Body.String(), secret) || log.Len() == 0 {
					t.Errorf("log %q, answer %q", log, w.Body)
				}
				for range 100 { // a pool is free to forget
					kept := h.bodies.Get()
					if all := kept.AvailableBuffer(); bytes.Contains(all[:cap(all)], []byte(secret)) {
						t.Fatal("content stays in memory")
					}
				}
			})
		})
	}
}
