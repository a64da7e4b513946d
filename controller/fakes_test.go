package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/reason/reasontest"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/workload"
)

// cluster is an API server with our webhook, in memory: objects of one kind,
// and what the sources hold. The webhook part is checksum.Decide itself.
type cluster struct {
	confirms, refreshes int // how often these were asked
	mu                  sync.Mutex
	kind                *workload.Kind
	ring                *checksum.Ring
	objects             map[workload.Ref]map[string]any
	contents            map[checksum.Source]*checksum.Content
	times               map[checksum.Source][2]time.Time

	away     bool           // the webhook is not called
	rider    string         // another webhook sets this label in any patch
	guarded  bool           // by our own policy, which lets nobody ride along
	unserved bool           // by our own policy, nothing is opted in
	oversize string         // the warning of a webhook that says that annotations do not fit
	fail     map[string]int // how many patches of an object of this name fail
	calls    []string
	lose     bool   // the answer to the next patch is lost, after it was stored
	gone     bool   // the API server does not know the workload
	refusal  error  // what is said to each patch
	slow     func() // what goes by while a patch is under way
	prunes   bool   // the API server keeps no annotations of templates
	denies   bool   // somebody's webhook denies patches, with a status code that means another thing
	// policy is by flags, settings are those of the namespace.
	unseen   error // why nobody may list pods
	pod      workload.Pod
	policy   checksum.Policy
	settings map[string]string
	said     []checksum.Finding // what the namespace says in vain
	findings map[checksum.Source][]checksum.Finding
	optedOut bool              // the namespace is
	inject   map[string]string // labels of Namespaces
	optIn    checksum.OptIn
	ending   bool // the namespace is
	// meanwhile is what others do between a read and the patch that follows it.
	meanwhile func()
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	key, err := checksum.NewKey(make([]byte, checksum.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := workload.Builtin().Find("apps", "deployments")
	return &cluster{
		kind:     kind,
		ring:     checksum.NewRing(key),
		policy:   checksum.DefaultPolicy(),
		inject:   map[string]string{"shop": checksum.InjectEnabled},
		objects:  map[workload.Ref]map[string]any{},
		contents: map[checksum.Source]*checksum.Content{},
		times:    map[checksum.Source][2]time.Time{},
		fail:     map[string]int{},
	}
}

func configMap(name string) checksum.Source {
	return checksum.Source{Kind: checksum.ConfigMap, Name: name}
}

func (c *cluster) write(name string, data map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.contents[configMap(name)] = checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: data})
}

// deploy makes a Deployment that reads ConfigMaps by envFrom, as it was before
// configstamp came.
func (c *cluster) deploy(name string, configMaps ...string) workload.Ref {
	var envFrom []any
	for _, cm := range configMaps {
		envFrom = append(envFrom, map[string]any{"configMapRef": map[string]any{"name": cm}})
	}
	ref := workload.Ref{Kind: c.kind, Namespace: "shop", Name: name}
	c.objects[ref] = map[string]any{
		"metadata": map[string]any{
			"name": name, "namespace": "shop", "uid": "uid-" + name, "resourceVersion": "1", "generation": 1.0,
			"managedFields": []any{map[string]any{"time": "2026-01-01T00:00:00Z", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:template": map[string]any{}}}}},
		},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "app", "envFrom": envFrom}},
		}}},
	}
	return ref
}

func (c *cluster) body(ref workload.Ref) []byte { return encoded(c.objects[ref]) }

func (c *cluster) get(_ context.Context, ref workload.Ref) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, "get "+ref.Name)
	if c.gone {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: ref.Kind.Resource}, ref.Name)
	}
	body := c.body(ref)
	if c.meanwhile != nil {
		c.meanwhile()
	}
	return body, nil
}

var errLost = errors.New("connection reset by peer")

// byOurPolicy is the API server's answer when our own policy refuses, in words that nobody reads.
func byOurPolicy(message string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "d",
		errors.New("ValidatingAdmissionPolicy 'configstamp' with binding 'configstamp' denied request: "+reasontest.Scramble(message)))
}

// tooLarge is the warning of a webhook whose annotations do not fit, in words that nobody reads.
func tooLarge() string { return reasontest.Scramble(reason.TooLarge.Warning(reason.Values{})) }

var errRefused = errors.New("admission webhook of somebody's denied the request")

func (c *cluster) readmit(_ context.Context, ref workload.Ref, manager string, dryRun bool) (_ []byte, _ []string, err error) {
	defer func() { err = refusal.Plain(err) }()
	c.mu.Lock()
	defer c.mu.Unlock()
	call := manager + " " + ref.Name
	if dryRun {
		call = "dry " + call
	}
	c.calls = append(c.calls, call)
	if c.slow != nil {
		c.slow()
	}
	if c.fail[ref.Name] > 0 {
		c.fail[ref.Name]--
		return nil, nil, errRefused
	}
	if c.gone {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: ref.Kind.Resource}, ref.Name)
	}
	if c.refusal != nil {
		return nil, nil, c.refusal
	}
	if c.denies {
		return nil, nil, fmt.Errorf("PATCH %s: %w", ref, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotFound, Message: `admission webhook "teams.example.com" denied the request: no such team`}})
	}
	if c.oversize != "" {
		return c.body(ref), []string{c.oversize}, nil
	}
	if c.unserved {
		return nil, nil, fmt.Errorf("PATCH %s: %w", ref, byOurPolicy("configstamp: opted-out: x"))
	}
	before := c.body(ref)
	if c.rider != "" && c.guarded {
		return nil, nil, byOurPolicy("configstamp: blocked: metadata.labels, spec.paused: x")
	}
	if c.rider != "" {
		labels(c.objects[ref])["rider"] = c.rider
	}
	var warnings []string
	if !c.away {
		warnings = c.admit(ref, manager)
	}
	if c.prunes {
		delete(c.objects[ref]["spec"].(map[string]any)["template"].(map[string]any), "metadata")
	}
	after := c.body(ref)
	if c.lose && !dryRun {
		c.lose = false
		return nil, nil, errLost
	}
	if dryRun { // nothing is stored, so the version stays
		version := metadata(before)["resourceVersion"]
		object := decoded(after)
		object["metadata"].(map[string]any)["resourceVersion"] = version
		after = encoded(object)
		c.objects[ref] = decoded(before)
	}
	return after, warnings, nil
}

func decoded(raw []byte) (object map[string]any) {
	if err := json.Unmarshal(raw, &object); err != nil {
		panic(err)
	}
	return object
}

func encoded(object map[string]any) []byte {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return raw
}

func metadata(raw []byte) map[string]any { return decoded(raw)["metadata"].(map[string]any) }

func labels(object map[string]any) map[string]any {
	metadata := object["metadata"].(map[string]any)
	if metadata["labels"] == nil {
		metadata["labels"] = map[string]any{}
	}
	return metadata["labels"].(map[string]any)
}

// admit is what our webhook and the API server do with a patch.
func (c *cluster) admit(ref workload.Ref, manager string) (warnings []string) {
	object, err := c.kind.Decode(c.body(ref))
	if err != nil {
		panic(err)
	}
	held, _ := object.Records()
	references, err := object.References()
	if err != nil {
		panic(err)
	}
	policy := c.policy.With(
		checksum.Level{Origin: checksum.OfWorkload, Annotations: object.Annotations},
		checksum.Level{Origin: checksum.OfNamespace, Annotations: c.settings})
	decision := checksum.Decide(c.ring, &checksum.Request{Namespace: ref.Namespace, Asker: checksum.AskerOf(manager, true), Sent: held}, &checksum.Facts{
		Held: held, Fresh: true, Policy: policy, Selections: checksum.Selections(references, policy),
		Content: func(s checksum.Source) *checksum.Content { return c.contents[s] },
	})
	if !decision.Records.Equal(held) {
		c.store(ref, decision.Records)
	}
	for _, finding := range decision.Findings {
		warnings = append(warnings, finding.Warning())
	}
	return warnings
}

// store writes a workload with what it has on record.
func (c *cluster) store(ref workload.Ref, records checksum.Records) {
	metadata := c.objects[ref]["metadata"].(map[string]any)
	template := c.objects[ref]["spec"].(map[string]any)["template"].(map[string]any)
	if len(records.Stamps) > 0 {
		template["metadata"] = map[string]any{"annotations": records.Stamps}
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	delete(annotations, checksum.BaselineAnnotation)
	if text := checksum.FormatBaseline(records.Baseline); text != "" {
		annotations[checksum.BaselineAnnotation] = text
	}
	if delete(metadata, "annotations"); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	metadata["generation"] = metadata["generation"].(float64) + 1
	version, _ := strconv.Atoi(metadata["resourceVersion"].(string))
	metadata["resourceVersion"] = strconv.Itoa(version + 1)
}

func (c *cluster) Content(_ string, source checksum.Source) *checksum.Content {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.contents[source]
}

func (c *cluster) Written(_ string, source checksum.Source) (written, created time.Time) {
	return c.times[source][0], c.times[source][1]
}

func (c *cluster) Version(string, checksum.Source) string { return "" }

func (c *cluster) pods(context.Context, string, string) ([]workload.Pod, error) {
	if c.pod.Name == "" {
		return nil, refusal.Plain(c.unseen)
	}
	return []workload.Pod{c.pod}, refusal.Plain(c.unseen)
}

func (c *cluster) nodeReady(context.Context, string) (bool, error) { return true, nil }

func (c *cluster) Namespaces(checksum.Source) []string { return nil }

func (c *cluster) Confirm(context.Context, string, checksum.Source) error {
	c.confirms++
	return nil
}

func (*cluster) MadeAnew(string, checksum.Source) bool { return false }

func (c *cluster) Findings(yield func(string, checksum.Source, []checksum.Finding)) {
	for source, found := range c.findings {
		yield("shop", source, found)
	}
}

func (c *cluster) Each(yield func(string, checksum.Namespace)) { yield("shop", c.Get("shop")) }

func (c *cluster) Names(_ string, kind checksum.Kind) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for source, content := range c.contents {
		if source.Kind == kind && content != nil {
			names = append(names, source.Name)
		}
	}
	return names
}

func (c *cluster) HasSynced() bool { return true }

func (c *cluster) Get(namespace string) checksum.Namespace {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := checksum.NamespaceOf(&metav1.ObjectMeta{Labels: map[string]string{checksum.InjectLabel: c.inject[namespace]}}, c.optIn)
	return checksum.Namespace{OptedIn: n.OptedIn && !c.optedOut, Ending: c.ending, Settings: c.settings, Findings: c.said}
}

// annotate sets annotations of a workload; the controller does not see it yet.
func (c *cluster) annotate(ref workload.Ref, pairs ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	metadata := c.objects[ref]["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	for i := 0; i < len(pairs); i += 2 {
		annotations["configstamp.dev/"+pairs[i]] = pairs[i+1]
	}
	metadata["annotations"] = annotations
	version, _ := strconv.Atoi(metadata["resourceVersion"].(string))
	metadata["resourceVersion"] = strconv.Itoa(version + 1)
}

func (c *cluster) Ring() *checksum.Ring { return c.ring }

func (c *cluster) Refresh(context.Context, string) (bool, error) {
	c.refreshes++
	return false, nil
}

// house is a controller over a cluster.
type house struct {
	*Controller
	cluster *cluster
	events  *events.FakeRecorder
	clock   *clocktesting.FakeClock
	scraped *prometheus.Registry
}

const settle = 2 * time.Second

func newHouse(t *testing.T, c *cluster) *house {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
	recorder := events.NewFakeRecorder(100)
	h := &house{cluster: c, events: recorder, clock: clock}
	h.control(t, settle, clock)
	h.leads.Store(true)
	h.Reconsider()
	return h
}

// control gives the house a controller that has seen the cluster.
func (h *house) control(t *testing.T, settle time.Duration, clock clock.WithTicker) {
	t.Helper()
	h.scraped = prometheus.NewRegistry()
	h.Controller = newController(Options{
		Policy: h.cluster.policy, Excluded: append(h.cluster.optIn.Excluded(), "kube-system"), Settle: settle, Workers: 2, Clock: clock,
	}, h.cluster, h.cluster, h.cluster, h.cluster, h.events, h.scraped)
	for ref := range h.cluster.objects {
		h.see(t, ref)
	}
}

// see has the controller's watch bring a workload.
func (h *house) see(t *testing.T, ref workload.Ref) {
	t.Helper()
	h.sees(t, ref, h.cluster.body(ref))
}

// sees has the watch of a controller bring a workload.
func (c *Controller) sees(t testing.TB, ref workload.Ref, body []byte) {
	t.Helper()
	if err := c.fills(ref.Kind, "").Update(c.arrived(t, ref.Kind, body)); err != nil {
		t.Fatal(err)
	}
}

// arrived is what a watch makes of an object.
func (c *Controller) arrived(t testing.TB, kind *workload.Kind, body []byte) received {
	t.Helper()
	read, ok := c.reads(kind)(asWatched(t, kind, body))
	if !ok {
		t.Fatalf("%s is no object", body)
	}
	return read
}

// asWatched is an object as the client of its kind decodes it.
func asWatched(t testing.TB, kind *workload.Kind, body []byte) runtime.Object {
	t.Helper()
	custom, head, gvk := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}, kind.GroupVersionKind()
	if kind.Custom {
		if err := json.Unmarshal(body, &custom.Object); err != nil {
			t.Fatal(err)
		}
		return custom
	}
	if whole, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, &gvk, nil); err == nil {
		return whole
	}
	if err := json.Unmarshal(body, head); err != nil {
		t.Fatal(err)
	}
	return head
}

// rest lets everything settle.
func (h *house) rest() { h.clock.Step(11 * settle) }

// happened drains the calls and events so far.
func (h *house) happened() (calls, said []string) {
	h.cluster.mu.Lock()
	calls, h.cluster.calls = h.cluster.calls, nil
	h.cluster.mu.Unlock()
	for {
		select {
		case event := <-h.events.Events:
			said = append(said, event)
		default:
			return calls, said
		}
	}
}

func (h *house) mustSync(t *testing.T, ref workload.Ref) time.Duration {
	t.Helper()
	wait, err := h.sync(t.Context(), ref)
	if err != nil {
		t.Fatalf("sync %s: %v", ref, err)
	}
	return wait
}

// adopted gives a house in which every workload is on record already.
func adopted(t *testing.T, c *cluster) *house {
	t.Helper()
	h := newHouse(t, c)
	for ref := range c.objects {
		h.mustSync(t, ref)
	}
	h.happened()
	return h
}

func texts(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }

// Changed is an edit of a source of which it is not known what it held before.
func (c *Controller) Changed(namespace string, source checksum.Source) {
	c.Edited(namespace, source, nil)
}
