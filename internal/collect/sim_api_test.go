package collect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/snapshot"
)

// api is an API server of one namespace, for ConfigMaps and for what names them. Each request
// takes a while on its way there and back.
type api struct {
	mu      sync.Mutex
	rand    *rand.Rand
	version int
	maps    map[string]*corev1.ConfigMap
	objects map[string]map[string]*object // by resource and name
	views   []*view
	failing float64 // how many LISTs fail
	// deleted is told of each snapshot that the collector has deleted, before it is.
	deleted func(cm *corev1.ConfigMap)
	counts  map[string]int
}

// object is one that may name a snapshot.
type object struct {
	uid, owner string
	pins       map[string]string // as they are written
	born       time.Time
}

func newAPI(seed uint64) *api {
	return &api{rand: rand.New(rand.NewPCG(seed, 21)), maps: map[string]*corev1.ConfigMap{}, objects: map[string]map[string]*object{}, counts: map[string]int{}}
}

// upTo is a random time, drawn under the lock.
func (a *api) upTo(most time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Duration(a.rand.Int64N(int64(most)) + 1)
}

func (a *api) chance(p float64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rand.Float64() < p
}

func (a *api) config() *rest.Config { return &rest.Config{Host: "http://api", QPS: -1, Transport: a} }

// RoundTrip implements http.RoundTripper.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	if err := wait(r, a.upTo(40*time.Millisecond)); err != nil {
		return nil, err
	}
	code, answer := a.serve(r, body)
	if err := wait(r, a.upTo(40*time.Millisecond)); err != nil {
		return nil, err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, nil
}

func wait(r *http.Request, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

func (a *api) serve(r *http.Request, body []byte) (int, any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	parts := strings.Split(r.URL.Path, "/")
	last := parts[len(parts)-1]
	if !strings.Contains(r.URL.Path, "/configmaps") {
		a.counts["LIST"]++
		return a.list(last, r.URL.Query().Get("continue"))
	}
	switch a.counts[r.Method]++; r.Method {
	case http.MethodGet:
		if cm := a.maps[last]; cm != nil {
			return http.StatusOK, typed(cm)
		}
		return refuse(http.StatusNotFound, metav1.StatusReasonNotFound, last)
	case http.MethodPost:
		var cm corev1.ConfigMap
		decode(body, &cm)
		if a.maps[cm.Name] != nil {
			return refuse(http.StatusConflict, metav1.StatusReasonAlreadyExists, cm.Name)
		}
		a.put(&cm)
		return http.StatusCreated, typed(a.maps[cm.Name])
	case http.MethodDelete:
		var options metav1.DeleteOptions
		decode(body, &options)
		cm := a.maps[last]
		switch p := options.Preconditions; {
		case cm == nil:
			return refuse(http.StatusNotFound, metav1.StatusReasonNotFound, last)
		case p == nil || p.UID == nil || p.ResourceVersion == nil:
			panic("a delete without preconditions")
		case *p.UID != cm.UID || *p.ResourceVersion != cm.ResourceVersion:
			return refuse(http.StatusConflict, metav1.StatusReasonConflict, last)
		}
		a.deleted(cm)
		a.remove(last)
		return http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
	}
	panic(r.Method + " " + r.URL.Path)
}

func typed(cm *corev1.ConfigMap) *corev1.ConfigMap {
	cm = cm.DeepCopy()
	cm.APIVersion, cm.Kind = "v1", "ConfigMap"
	return cm
}

func decode(body []byte, into runtime.Object) {
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, into); err != nil {
		panic(err)
	}
}

func refuse(code int, reason metav1.StatusReason, name string) (int, any) {
	return code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Details: &metav1.StatusDetails{Name: name, Kind: "configmaps"},
	}
}

const perPage = 3

// list answers page by page; what changes between two pages is in the later one.
func (a *api) list(resource, from string) (int, any) {
	if a.rand.Float64() < a.failing {
		if from != "" {
			return refuse(http.StatusGone, metav1.StatusReasonExpired, "")
		}
		return refuse(http.StatusForbidden, metav1.StatusReasonForbidden, "")
	}
	list := map[string]any{"apiVersion": "v1", "kind": "SomeList"}
	meta := map[string]any{"resourceVersion": strconv.Itoa(a.version)}
	items := []any{}
	for _, name := range slices.Sorted(maps.Keys(a.objects[resource])) {
		if name <= from {
			continue
		}
		if len(items) == perPage {
			meta["continue"] = items[perPage-1].(map[string]any)["metadata"].(map[string]any)["name"]
			break
		}
		items = append(items, a.objects[resource][name].written(name, resource))
	}
	list["metadata"], list["items"] = meta, items
	return http.StatusOK, list
}

// written is an object as the API server writes it. The text of a revision is JSON in JSON.
func (o *object) written(name, resource string) map[string]any {
	meta := map[string]any{"name": name, "namespace": "shop", "uid": o.uid}
	if o.owner != "" {
		meta["ownerReferences"] = []any{map[string]any{"uid": o.owner, "controller": true, "kind": "X", "name": "x", "apiVersion": "v1"}}
	}
	if len(o.pins) == 0 {
		return map[string]any{"metadata": meta}
	}
	pins, _ := json.Marshal(o.pins)
	annotations := map[string]any{checksum.PinsAnnotation: string(pins)}
	switch resource {
	case "pods":
		meta["annotations"] = annotations
		return map[string]any{"metadata": meta}
	case "controllerrevisions":
		data, _ := json.Marshal(map[string]any{"spec": annotations})
		return map[string]any{"metadata": meta, "data": map[string]any{"raw": string(data)}}
	}
	return map[string]any{"metadata": meta, "spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": annotations}}}}
}

// put stores a ConfigMap; the caller holds the lock.
func (a *api) put(cm *corev1.ConfigMap) {
	a.version++
	cm = cm.DeepCopy()
	cm.Namespace, cm.ResourceVersion = "shop", strconv.Itoa(a.version)
	if old := a.maps[cm.Name]; old != nil {
		cm.UID = old.UID
	} else {
		cm.UID, cm.CreationTimestamp = types.UID(fmt.Sprint("uid-", a.version)), metav1.Now()
	}
	a.maps[cm.Name] = cm
	a.tell(cm, false)
}

func (a *api) remove(name string) {
	a.version++
	cm := a.maps[name]
	delete(a.maps, name)
	a.tell(cm, true)
}

func (a *api) tell(cm *corev1.ConfigMap, deleted bool) {
	for _, v := range a.views {
		v.queue <- arrival{cm, deleted}
	}
}

// view is what one process knows, by a watch that is late.
type view struct {
	queue chan arrival
	lag   func() time.Duration

	mu         sync.Mutex
	contents   map[string]*checksum.Content
	snapshots  map[string]snapshot.Snapshot
	onSnapshot []func(namespace, name string)
	onChange   []func(namespace string, source checksum.Source, was *checksum.Content)
}

type arrival struct {
	cm      *corev1.ConfigMap
	deleted bool
}

func (a *api) view(lag func() time.Duration) *view {
	v := &view{queue: make(chan arrival, 1<<16), lag: lag, contents: map[string]*checksum.Content{}, snapshots: map[string]snapshot.Snapshot{}}
	a.views = append(a.views, v)
	return v
}

func (v *view) run() {
	for next := range v.queue {
		time.Sleep(v.lag())
		v.take(next)
	}
}

func (v *view) take(next arrival) {
	name := next.cm.Name
	s, is := snapshot.From(next.cm)
	v.mu.Lock()
	was := v.contents[name]
	switch {
	case is && next.deleted:
		delete(v.snapshots, name)
	case is:
		v.snapshots[name] = s
	case next.deleted:
		delete(v.contents, name)
	default:
		v.contents[name] = checksum.ContentOfConfigMap(next.cm)
	}
	v.mu.Unlock()
	if is {
		for _, call := range v.onSnapshot {
			call("shop", name)
		}
		return
	}
	for _, call := range v.onChange {
		call("shop", checksum.Source{Kind: checksum.ConfigMap, Name: name}, was)
	}
}

func (v *view) HasSynced() bool { return true }

func (v *view) Content(_ string, source checksum.Source) *checksum.Content {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.contents[source.Name]
}

func (v *view) Snapshot(_, name string) (snapshot.Snapshot, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, ok := v.snapshots[name]
	return s, ok
}

func (v *view) Snapshots(string) (all []snapshot.Snapshot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(v.snapshots)) {
		all = append(all, v.snapshots[name])
	}
	return all
}

func (v *view) SnapshotNamespaces() []string { return []string{"shop"} }

func (v *view) OnSnapshot(call func(namespace, name string)) {
	v.onSnapshot = append(v.onSnapshot, call)
}

func (v *view) OnChange(call func(namespace string, source checksum.Source, was *checksum.Content)) {
	v.onChange = append(v.onChange, call)
}
