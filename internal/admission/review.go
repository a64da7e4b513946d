package admission

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

const (
	// MaxBytes bounds a review: an object and its old version, of the
	// 3 MiB that the API server accepts each, and room for the rest.
	MaxBytes = 8 << 20
	// MaxValues bounds the JSON values of a review, as carve counts them: once it is read, each
	// may take some 280 bytes. Two objects of a megabyte seldom have as many.
	MaxValues = 150_000
	// maxEnvelope bounds what a review is beside its objects.
	maxEnvelope = 1 << 20
	// creditBytes is how much is allocated on the word of a Content-Length, and
	// how large a body's room may be to be kept for the next one.
	creditBytes = 256 << 10
)

const (
	// usualTimeout is what the API server waits for a webhook that names no timeoutSeconds.
	usualTimeout = 10 * time.Second
	// longestTimeout is the longest timeoutSeconds that a webhook can have.
	longestTimeout = 30 * time.Second
)

// Within returns how long an answer may take: three quarters of the time that the API server waits. Its request has that
// time as the parameter timeout (a Go duration), rounded up to a second, so half a second is taken off. More than 30 s
// count as 30 s.
func Within(r *http.Request) time.Duration {
	_, query, _ := strings.Cut(r.URL.RawQuery, "timeout=")
	text, _, _ := strings.Cut(query, "&")
	waits, err := time.ParseDuration(text)
	if err != nil || waits <= 0 {
		waits = usualTimeout
	}
	return max(min(waits, longestTimeout)-500*time.Millisecond, 500*time.Millisecond) / 4 * 3
}

var errBusy = errors.New("too many reviews at once")

var errTooLarge = fmt.Errorf("the review is larger than %d bytes", MaxBytes)

// Bodies are buffers for the next reviews.
type Bodies struct{ pool sync.Pool }

// Get gives an empty buffer.
func (b *Bodies) Get() *bytes.Buffer {
	if body, ok := b.pool.Get().(*bytes.Buffer); ok {
		return body
	}
	return new(bytes.Buffer)
}

// Put wipes a buffer, and keeps it unless it is large.
func (b *Bodies) Put(body *bytes.Buffer) {
	clear(body.Bytes())
	if body.Cap() <= 2*creditBytes {
		body.Reset()
		b.pool.Put(body)
	}
}

// Read reads a review into body; its objects are parts of that. A request that is no review has an HTTP status, which the
// API server treats by the webhook's failurePolicy.
func Read(w http.ResponseWriter, r *http.Request, body *bytes.Buffer) (request *admissionv1.AdmissionRequest, status int, err error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, http.StatusMethodNotAllowed, fmt.Errorf("method %s: admission reviews are sent by POST", r.Method)
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, http.StatusUnsupportedMediaType, errors.New("the content type must be application/json")
	}
	// Room is made at once for what is announced, but not on credit for much.
	body.Grow(int(bytes.MinRead + min(max(r.ContentLength, 0), creditBytes)))
	_, err = body.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBytes))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the answer may take longer; a recorder in a test has none
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge, errTooLarge
	} else if err != nil {
		return nil, http.StatusBadRequest, errors.New("the review could not be read to its end")
	}
	// object and oldObject are most of a review; a library would read each byte
	// of them twice.
	envelope, object, oldObject, values := carve(body.Bytes())
	if len(envelope) > maxEnvelope || values > MaxValues {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the review has more than %d values, or more than %d bytes beside its objects", MaxValues, maxEnvelope)
	}
	if err := weigh(r.Context(), values); err != nil {
		return nil, http.StatusServiceUnavailable, errBusy
	}
	var review admissionv1.AdmissionReview
	if err := jsonv2.Unmarshal(envelope, &review, jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, http.StatusBadRequest, errors.New("the body is not an AdmissionReview in JSON")
	}
	if review.GroupVersionKind() != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview") {
		return nil, http.StatusBadRequest, errors.New("want apiVersion admission.k8s.io/v1, kind AdmissionReview")
	}
	if review.Request == nil || review.Request.UID == "" {
		return nil, http.StatusBadRequest, errors.New("the review has no request with a uid")
	}
	if object != nil {
		review.Request.Object.Raw = object
	}
	if oldObject != nil {
		review.Request.OldObject.Raw = oldObject
	}
	return review.Request, http.StatusOK, nil
}

// Write answers a review, at once: the handler may have to wait for something afterwards.
func Write(w http.ResponseWriter, log klog.Logger, response *admissionv1.AdmissionResponse) {
	text, err := jsonv2.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: response,
	}, jsonv2.Deterministic(true))
	if err != nil {
		log.Error(err, "Writing an admission review")
		http.Error(w, "configstamp: the answer could not be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, err = w.Write(text)
	if err = errors.Join(err, http.NewResponseController(w).Flush()); err != nil {
		log.V(1).Info("The API server closed the connection before the answer", "reason", err.Error())
	}
}
