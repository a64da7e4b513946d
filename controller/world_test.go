package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/fair"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// simulatedQueue is a work queue at a simulated time, for one worker.
type simulatedQueue struct {
	world   *world
	fair    *fair.Queue[workload.Ref]
	queued  map[workload.Ref]bool
	later   map[workload.Ref]time.Time
	retries map[workload.Ref]int
}

// simulatedCycles is the queue of cycles, at a simulated time.
type simulatedCycles struct {
	world *world
	due   time.Time // zero: none is
	tries int
	works bool // one is under way
}

func (q *simulatedCycles) Add(cycle struct{}) { q.AddAfter(cycle, 0) }

func (q *simulatedCycles) AddAfter(_ struct{}, wait time.Duration) {
	if due := q.world.clock.Now().Add(max(wait, 0)); q.due.IsZero() || due.Before(q.due) {
		q.due = due
	}
}

func (q *simulatedCycles) AddRateLimited(cycle struct{}) {
	q.AddAfter(cycle, min(firstRetry<<min(q.tries, 20), lastRetry))
	q.tries++
}

func (q *simulatedCycles) Get() (struct{}, bool) {
	q.due, q.works = time.Time{}, true
	return struct{}{}, false
}

func (q *simulatedCycles) Done(struct{})            { q.works = false }
func (q *simulatedCycles) Forget(struct{})          { q.tries = 0 }
func (q *simulatedCycles) NumRequeues(struct{}) int { return q.tries }
func (q *simulatedCycles) isDue() bool              { return !q.due.IsZero() && !q.due.After(q.world.clock.Now()) }
func (*simulatedCycles) Len() int                   { return 0 }
func (*simulatedCycles) ShutDown()                  {}
func (*simulatedCycles) ShutDownWithDrain()         {}
func (*simulatedCycles) ShuttingDown() bool         { return false }

func (q *simulatedQueue) Add(ref workload.Ref) {
	if !q.queued[ref] {
		q.queued[ref] = true
		q.fair.Push(ref)
	}
}

func (q *simulatedQueue) AddAfter(ref workload.Ref, wait time.Duration) {
	if wait <= 0 {
		q.Add(ref)
		return
	}
	due := q.world.clock.Now().Add(wait)
	if known, waiting := q.later[ref]; !waiting || due.Before(known) {
		q.later[ref] = due
	}
}

func (q *simulatedQueue) AddRateLimited(ref workload.Ref) {
	q.AddAfter(ref, min(firstRetry<<min(q.retries[ref], 20), lastRetry))
	q.retries[ref]++
}

func (q *simulatedQueue) Get() (workload.Ref, bool) {
	ref := q.fair.Pop()
	delete(q.queued, ref)
	return ref, false
}

func (q *simulatedQueue) Forget(ref workload.Ref)          { delete(q.retries, ref) }
func (q *simulatedQueue) NumRequeues(ref workload.Ref) int { return q.retries[ref] }
func (q *simulatedQueue) Len() int                         { return q.fair.Len() }
func (*simulatedQueue) Done(workload.Ref)                  {}
func (*simulatedQueue) ShutDown()                          {}
func (*simulatedQueue) ShutDownWithDrain()                 {}
func (*simulatedQueue) ShuttingDown() bool                 { return false }

// wake moves what is due, and returns when something is due next.
func (q *simulatedQueue) wake(now time.Time) (next time.Time) {
	var due []workload.Ref
	for ref, at := range q.later {
		switch {
		case !at.After(now):
			due = append(due, ref)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	slices.SortFunc(due, func(a, b workload.Ref) int { // maps have no order, and a seed has to repeat
		return cmp.Or(q.later[a].Compare(q.later[b]), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, ref := range due {
		delete(q.later, ref)
		q.Add(ref)
	}
	return next
}

// world is a cluster with its users, at a simulated time.
type world struct {
	t      *testing.T
	random *rand.Rand
	clock  *clocktesting.FakeClock
	kind   *workload.Kind
	ring   *checksum.Ring
	limits rollout.Limits

	controller *Controller
	told       remarks
	queue      *simulatedQueue
	cycles     *simulatedCycles
	apps       map[workload.Ref]*simulatedApp
	names      []workload.Ref
	contents   map[rollout.SourceRef]*checksum.Content
	written    map[rollout.SourceRef]time.Time
	behind     map[rollout.SourceRef]*checksum.Content // what the watch has delivered last, where it is late
	late       time.Duration                           // by how much it is
	bad        map[*checksum.Content]bool
	edited     map[*checksum.Content]time.Time
	victims    map[*checksum.Content]map[workload.Ref]victim // healthy workloads that a bad content has reached
	forgiven   map[*checksum.Content]int                     // how many more it may reach
	plan       map[time.Time][]func()
	versions   int
	most       int // rollouts under way at once
	leaders    int
	flaky      bool // workloads and the API server fail by themselves
	said       []said
	anew       bool              // sources were immutable, and are made anew
	unseen     error             // why nobody may list pods
	poison     rollout.SourceRef // whose content makes us panic
	panics     int               // how often the planner is yet to panic
	deadNode   bool              // there is a node that is not ready, on which DaemonSets lack their pods
	patches    int
	lists      int
	optedOut   bool // the namespaces are
	dialects   []checksum.Dialect
	refusal    error                        // what is said to a patch that is refused
	asked      int                          // how often nodes were
	meanwhile  func()                       // happens while a node is asked for
	records    bool                         // workloads may be without records, and be recorded
	settings   map[string]map[string]string // of the namespaces
	reports    *reports                     // nil: none are written
	// before is what happens before a patch is stored.
	before func()
	// answers is what becomes of the answer to a patch that was stored.
	answers func(app *simulatedApp) error
}

// victim is a workload that a bad content has reached, and under which leader.
type victim struct {
	ref    workload.Ref
	at     string
	leader int
}

// said is an event.
type said struct{ about, reason, text string }

// Eventf implements events.EventRecorder.
func (w *world) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	about, _ := regarding.(*corev1.ObjectReference)
	w.said = append(w.said, said{about.Kind + " " + about.Name, reason, fmt.Sprintf(note, args...)})
}

// simulatedApp is one workload.
type simulatedApp struct {
	ref        workload.Ref
	sources    []checksum.Source
	records    checksum.Records
	version    int
	rolls      int
	edits      int
	rolled     time.Time // when its newest revision began; zero: long ago
	well       time.Time // when that is well; zero: never, as it is
	broken     bool      // and was before anything changed
	mute       bool      // it has no replicas
	refused    int       // patches yet to be refused
	single     bool      // it has one replica
	keyed      bool      // it reads one key of its first source
	looked     int       // of a custom kind: for how many rolls its controller has changed the status
	podStarted time.Time // when its pods started again, by themselves
	// settings are its annotations.
	settings   map[string]string
	labels     map[string]string
	uid        string // "" for its name
	paused     bool
	muted      time.Time // when somebody scaled or paused it; zero: nobody did
	deleting   bool
	shares     bool      // its labels with a workload whose pods crash
	conditions []any     // of its status
	illegible  bool      // its template is
	unreadable time.Time // until when each PATCH and GET of it is answered with an error
}

// inOneGoroutine is for tests at a simulated time, which do one thing after the other: the
// race detector finds nothing there, and makes them ten times slower. "make unit" has it with
// -short, and runs them again without.
func inOneGoroutine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it has one goroutine: make unit runs it without the race detector")
	}
}

// newWorld is a world without workloads; add them, and have somebody lead.
func newWorld(t *testing.T) *world {
	t.Helper()
	inOneGoroutine(t)
	key, err := checksum.NewKey(make([]byte, checksum.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := workload.Builtin().Find("apps", "deployments")
	return &world{
		t: t, random: rand.New(rand.NewPCG(1, 1)), kind: kind, ring: checksum.NewRing(key),
		clock:  clocktesting.NewFakeClock(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)),
		limits: rollout.Limits{Step: 1, Unsettled: rollout.Number(30), UnsettledPerNamespace: 29, Soak: 10 * time.Second, CrashDeadline: 30 * time.Second, RolloutDeadline: 5 * time.Minute},
		apps:   map[workload.Ref]*simulatedApp{}, contents: map[rollout.SourceRef]*checksum.Content{}, written: map[rollout.SourceRef]time.Time{}, behind: map[rollout.SourceRef]*checksum.Content{},
		bad: map[*checksum.Content]bool{}, edited: map[*checksum.Content]time.Time{}, victims: map[*checksum.Content]map[workload.Ref]victim{}, forgiven: map[*checksum.Content]int{}, plan: map[time.Time][]func(){},
	}
}

// add has a workload run, for weeks already, with what its sources hold.
func (w *world) add(app *simulatedApp) {
	for _, source := range app.sources {
		if at := (rollout.SourceRef{Namespace: app.ref.Namespace, Source: source}); w.contents[at] == nil {
			w.contents[at] = w.newContent()
		}
	}
	w.apps[app.ref] = app
	w.names = append(w.names, app.ref)
	app.records.Stamps = map[string]string{}
	w.stamp(app)
}

func (w *world) newContent() *checksum.Content {
	w.versions++
	return checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"version": strconv.Itoa(w.versions)}})
}

// at plans something.
func (w *world) at(wait time.Duration, do func()) {
	due := w.clock.Now().Add(wait)
	w.plan[due] = append(w.plan[due], do)
}

// edit gives a source a content.
func (w *world) edit(at rollout.SourceRef, content *checksum.Content) {
	was, leader := w.contents[at], w.leaders
	w.contents[at], w.written[at] = content, w.clock.Now().Truncate(time.Second)
	w.edited[content] = w.clock.Now()
	for _, app := range w.apps {
		if app.ref.Namespace == at.Namespace && slices.Contains(app.sources, at.Source) {
			app.edits++
		}
	}
	if _, behind := w.behind[at]; w.late == 0 && !behind {
		w.controller.Changed(at.Namespace, at.Source)
		return
	} else if !behind {
		w.behind[at] = was
	}
	w.at(w.late, func() {
		if w.contents[at] == content && w.leaders == leader { // else a later message comes, or was listed
			delete(w.behind, at)
			w.controller.Changed(at.Namespace, at.Source)
		}
	})
}

// lead begins with a new leader, who knows nothing but the cluster.
func (w *world) lead() {
	w.leaders++
	clear(w.behind)
	w.queue = &simulatedQueue{world: w, fair: fair.New(func(ref workload.Ref) string { return ref.Namespace }, w.clock.Now), queued: map[workload.Ref]bool{}, later: map[workload.Ref]time.Time{}, retries: map[workload.Ref]int{}}
	w.controller = newController(Options{Kinds: workload.Builtin(), Policy: checksum.DefaultPolicy(), Dialects: w.dialects, Settle: settle, Limits: w.limits, Workers: 1, Clock: w.clock},
		w, w, w, w, w, prometheus.NewRegistry())
	w.cycles = &simulatedCycles{world: w}
	w.controller.queue, w.controller.cycles = w.queue, w.cycles
	w.told = remarks{}
	for _, ref := range w.names {
		w.see(ref)
	}
	w.controller.index.Refresh()
	w.controller.full.Store(true)
	if w.reports != nil {
		w.controller.Reports(w.reports.changed)
	}
	w.controller.lead()
}

// see has the controller's watch bring a workload as it is.
func (w *world) see(ref workload.Ref) {
	w.controller.sees(w.t, ref, w.body(w.apps[ref]))
}

// until lets time pass, event by event, for a while.
func (w *world) until(end time.Time) {
	for {
		w.drain()
		next := w.queue.wake(w.clock.Now())
		if w.queue.Len() > 0 {
			continue
		}
		if due := w.cycles.due; !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
		for due := range w.plan {
			if next.IsZero() || due.Before(next) {
				next = due
			}
		}
		if next.IsZero() || next.After(end) {
			w.clock.SetTime(end)
			return
		}
		w.clock.SetTime(next)
		todo := w.plan[next]
		delete(w.plan, next)
		for _, do := range todo {
			do()
		}
	}
}

// pass lets time pass.
func (w *world) pass(time time.Duration) {
	w.until(w.clock.Now().Add(time))
	w.controller.tellNewFindings(w.t.Context(), w.told)
}

// drain has the controller do all that is due now.
func (w *world) drain() {
	for n := 0; w.queue.Len() > 0 || w.cycles.isDue(); n++ {
		if n > 100*simulatedApps {
			w.t.Fatal("the controller is busy for ever at one moment")
		}
		if w.cycles.isDue() {
			w.controller.nextCycle(w.t.Context())
		}
		if w.queue.Len() > 0 {
			w.controller.next(w.t.Context())
		}
		w.reports.write(w)
	}
	w.reports.write(w)
}

// well reports whether a workload is as it should be.
func (w *world) isWell(app *simulatedApp) bool {
	return !app.broken && (app.rolled.IsZero() || !app.well.IsZero() && !w.clock.Now().Before(app.well))
}

// rolled is what happens when a workload's stamps change.
func (w *world) rolled(app *simulatedApp) {
	now, was := w.clock.Now(), app.records
	wasWell := w.isWell(app) && now.Sub(app.well) >= w.limits.Soak // healthy is to be well for that long
	if w.stamp(app); app.records.Equal(was) {
		return // it was true: the webhook makes no patch
	}
	app.version++
	app.rolls++
	if app.rolls > app.edits {
		w.t.Errorf("%s has rolled %d times for %d edits", app.ref, app.rolls, app.edits)
	}
	app.rolled, app.well = now, time.Time{}
	bad := false
	for _, source := range app.sources {
		content := w.contents[rollout.SourceRef{Namespace: app.ref.Namespace, Source: source}]
		if w.bad[content] {
			bad = true
			if wasWell && !app.mute {
				if w.victims[content] == nil {
					w.victims[content] = map[workload.Ref]victim{}
				}
				if _, known := w.victims[content][app.ref]; !known {
					w.victims[content][app.ref] = victim{app.ref, now.Format(time.TimeOnly), w.leaders}
				}
			}
		}
	}
	takes := 5 * time.Second
	if w.flaky {
		takes = time.Duration(2+w.random.IntN(20)) * time.Second
	}
	switch {
	case bad || app.broken || app.mute:
	case w.flaky && w.random.IntN(25) == 0: // fails for a while by itself
		app.well = now.Add(takes + time.Duration(w.random.IntN(900))*time.Second)
	default:
		app.well = now.Add(takes)
	}
	for _, at := range []time.Time{now.Add(takes), app.well} {
		if at.After(now) {
			w.at(at.Sub(now), func() { app.version++; w.see(app.ref) })
		}
	}
	underWay := 0
	for _, other := range w.apps {
		if !other.mute && !other.broken && !other.rolled.IsZero() && other.well.After(now) && other.well.Sub(other.rolled) < time.Minute {
			underWay++
		}
	}
	w.most = max(w.most, underWay)
}

// recorded is what a recording comes to.
func (w *world) recorded(app *simulatedApp, dryRun bool) []byte {
	if !w.records {
		w.t.Fatal("nothing is to be recorded here")
	}
	was := app.records
	app.records = w.decide(app, checksum.Recorder)
	body := w.body(app)
	if dryRun {
		app.records = was
	}
	return body
}

// stamp has a workload carry what is true now.
func (w *world) stamp(app *simulatedApp) { app.records = w.decide(app, checksum.Roller) }

// decide is what the webhook says.
func (w *world) decide(app *simulatedApp, asker checksum.Asker) checksum.Records {
	object, err := app.ref.Kind.Decode(w.body(app))
	if err != nil {
		w.t.Fatal(err)
	}
	references, err := object.References()
	if err != nil {
		w.t.Fatal(err)
	}
	policy := checksum.DefaultPolicy().With(checksum.Level{Origin: checksum.OfWorkload, Annotations: app.settings},
		checksum.Level{Origin: checksum.OfNamespace, Annotations: w.settings[app.ref.Namespace]})
	request := &checksum.Request{Namespace: app.ref.Namespace, Asker: asker, Sent: app.records}
	if !w.records && len(app.records.Stamps) == 0 {
		request.Change = checksum.Created
	}
	return checksum.Decide(w.ring, request, &checksum.Facts{
		Fresh: true, Policy: policy, Selections: checksum.Selections(references, policy), Held: app.records,
		Content: func(s checksum.Source) *checksum.Content {
			return w.contents[rollout.SourceRef{Namespace: app.ref.Namespace, Source: s}]
		},
	}).Records
}

// body is a workload as the API server writes it.
func (w *world) body(app *simulatedApp) []byte {
	var envFrom []any
	for _, source := range app.sources {
		envFrom = append(envFrom, map[string]any{"configMapRef": map[string]any{"name": source.Name}})
	}
	container := map[string]any{"name": "app", "envFrom": envFrom}
	if app.keyed {
		container = map[string]any{"name": "app", "env": []any{map[string]any{"name": "V", "valueFrom": map[string]any{
			"configMapKeyRef": map[string]any{"name": app.sources[0].Name, "key": "version"}}}}}
	}
	replicas, ready := 2, 2
	if !w.isWell(app) {
		ready = 1
	}
	switch {
	case app.mute:
		replicas, ready = 0, 0
	case app.broken:
		ready = 0
	case app.single:
		replicas, ready = 1, ready-1
	}
	nodes := replicas
	if w.deadNode && !app.mute {
		nodes++
	}
	metadata := map[string]any{"name": app.ref.Name, "namespace": app.ref.Namespace, "uid": cmp.Or(app.uid, app.ref.Name),
		"resourceVersion": strconv.Itoa(app.version + 1), "generation": app.rolls + 1, "labels": app.labels, "annotations": app.settings}
	if baseline := app.records.OnWorkload(); len(baseline) > 0 {
		maps.Copy(baseline, app.settings)
		metadata["annotations"] = baseline
	}
	if app.deleting {
		metadata["deletionTimestamp"] = w.clock.Now()
	}
	if !app.muted.IsZero() {
		metadata["managedFields"] = []any{map[string]any{"time": app.muted.UTC().Format(time.RFC3339),
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}}}}
	}
	spec := map[string]any{"containers": []any{container}}
	if app.illegible {
		spec = tooManyKeys()
	}
	if app.ref.Kind.Custom { // which has no selector, and a status that does not say which generation it speaks of
		status := map[bool]string{true: "True", false: "False"}[app.looked < app.rolls || w.isWell(app)]
		return encoded(map[string]any{
			"metadata": metadata,
			"spec": map[string]any{"template": map[string]any{
				"metadata": map[string]any{"annotations": app.records.OnTemplate()},
				"spec":     spec,
			}},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}, "looked": app.looked},
		})
	}
	return encoded(map[string]any{
		"metadata": metadata,
		"spec": map[string]any{"replicas": replicas, "paused": app.paused, "selector": map[string]any{"matchLabels": map[string]any{"app": app.ref.Name}}, "template": map[string]any{
			"metadata": map[string]any{"annotations": app.records.OnTemplate()},
			"spec":     spec,
		}},
		"status": map[string]any{
			"observedGeneration": app.rolls + 1, "conditions": app.conditions, "replicas": replicas, "updatedReplicas": replicas, "availableReplicas": ready, "readyReplicas": ready,
			"desiredNumberScheduled": nodes, "updatedNumberScheduled": replicas, "numberAvailable": ready,
		},
	})
}

// tooManyKeys is the spec of a pod whose references select more keys than are read.
func tooManyKeys() map[string]any {
	const many = 320
	sources, mounts := make([]any, many), make([]any, many)
	for i := range many {
		sources[i] = map[string]any{"configMap": map[string]any{"name": "c"}}
		mounts[i] = map[string]any{"name": "all", "mountPath": fmt.Sprint("/", i), "subPath": fmt.Sprint("k", i)}
	}
	return map[string]any{
		"volumes":    []any{map[string]any{"name": "all", "projected": map[string]any{"sources": sources}}},
		"containers": []any{map[string]any{"name": "app", "volumeMounts": mounts}},
	}
}

var (
	errUncertain = errors.New("connection reset by peer")
	errUnread    = refusal.Plain(apierrors.NewInternalError(errors.New("its conversion webhook is away")))
	errDenied    = apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "app", errors.New("somebody's policy"))
)

// get implements api.
func (w *world) get(_ context.Context, ref workload.Ref) ([]byte, error) {
	w.outsideCycles()
	if w.clock.Now().Before(w.apps[ref].unreadable) {
		return nil, errUnread
	}
	return w.body(w.apps[ref]), nil
}

// outsideCycles checks that a request does not come from a cycle: while it waits, nothing is judged.
func (w *world) outsideCycles() {
	if w.cycles.works {
		w.t.Error("a cycle makes an API request")
	}
}

// readmit implements api.
func (w *world) readmit(_ context.Context, ref workload.Ref, manager string, dryRun bool) ([]byte, []string, error) {
	app := w.apps[ref]
	w.outsideCycles()
	if w.clock.Now().Before(app.unreadable) {
		return nil, nil, errUnread
	}
	w.patches++
	if manager == checksum.RecordingManager {
		return w.recorded(app, dryRun), nil, nil
	}
	if w.flaky && app.refused == 0 && w.random.IntN(30) == 0 {
		app.refused = 1 + w.random.IntN(12)
	}
	if app.refused > 1 {
		app.refused--
		return nil, nil, refusal.Plain(cmp.Or(w.refusal, error(errDenied)))
	}
	app.refused = 0
	if w.before != nil {
		w.before()
	}
	w.rolled(app)
	if w.answers != nil {
		if err := w.answers(app); err != nil {
			return nil, nil, err
		}
	}
	if w.flaky && w.random.IntN(30) == 0 {
		w.at(time.Second, func() { w.see(ref) })
		return nil, nil, errUncertain
	}
	return w.body(app), nil, nil
}

// pods implements api.
func (w *world) pods(_ context.Context, namespace, selector string) ([]workload.Pod, error) {
	w.lists++
	w.outsideCycles()
	if w.unseen != nil {
		return nil, refusal.Plain(w.unseen)
	}
	app := w.apps[workload.Ref{Kind: w.kind, Namespace: namespace, Name: selector[len("app="):]}]
	old := workload.Pod{Name: app.ref.Name + "-old", Node: "first", Ready: !app.broken} // its native gate keeps it
	pod := workload.Pod{Name: app.ref.Name, Node: "second", Stamps: app.records.Stamps, Created: app.rolled.Truncate(time.Second)}
	var lost []workload.Pod
	if w.deadNode {
		lost = []workload.Pod{{Name: app.ref.Name + "-lost", Node: deadNode, Deleting: true}}
	}
	if app.shares {
		lost = append(lost, workload.Pod{Name: "other", Node: "third", Stamps: app.records.Stamps, Created: app.rolled, Trouble: "container other: CrashLoopBackOff",
			Owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other-7d9", UID: "other", Controller: new(true)}, Hash: "7d9"})
	}
	if app.mute {
		return lost, nil
	}
	if w.isWell(app) {
		pod.Ready, pod.Started = true, app.well.Truncate(time.Second)
		if app.well.IsZero() {
			pod.Created, pod.Started = time.Unix(0, 0), time.Unix(0, 0)
		}
		if app.podStarted.After(pod.Started) {
			pod.Created, pod.Started = app.podStarted.Truncate(time.Second), app.podStarted.Truncate(time.Second)
		}
		return append(lost, pod), nil
	}
	if app.well.IsZero() || app.well.Sub(app.rolled) > time.Minute {
		pod.Trouble = "container app: CrashLoopBackOff"
	}
	return append(lost, old, pod), nil
}

const deadNode = "dead"

// nodeReady implements api.
func (w *world) nodeReady(_ context.Context, name string) (bool, error) {
	w.outsideCycles()
	if w.asked++; w.meanwhile != nil {
		w.meanwhile()
	}
	return name != deadNode, nil
}

func (*world) HasSynced() bool                                        { return true }
func (w *world) Each(func(string, checksum.Namespace))                {}
func (*world) Confirm(context.Context, string, checksum.Source) error { return nil }
func (w *world) MadeAnew(string, checksum.Source) bool                { return w.anew }
func (w *world) Findings(yield func(string, checksum.Source, []checksum.Finding)) {
	for at, content := range w.contents {
		if content != nil {
			yield(at.Namespace, at.Source, content.Policy.Findings(at.Source))
		}
	}
}
func (w *world) Get(namespace string) checksum.Namespace {
	return checksum.Namespace{OptedIn: !w.optedOut, Settings: w.settings[namespace]}
}
func (w *world) Ring() *checksum.Ring                        { return w.ring }
func (*world) Refresh(context.Context, string) (bool, error) { return false, nil }
func (w *world) Namespaces(of checksum.Source) (namespaces []string) {
	for at := range w.contents {
		if at.Source == of {
			namespaces = append(namespaces, at.Namespace)
		}
	}
	slices.Sort(namespaces)
	return namespaces
}

func (*world) Names(string, checksum.Kind) []string   { return nil }
func (*world) Version(string, checksum.Source) string { return "" }
func (w *world) Content(ns string, s checksum.Source) *checksum.Content {
	if w.panics > 0 && w.cycles.works {
		w.panics--
		panic("at a halt")
	}
	if w.poison == (rollout.SourceRef{Namespace: ns, Source: s}) {
		panic("at the content S3CR3T")
	}
	if was, behind := w.behind[rollout.SourceRef{Namespace: ns, Source: s}]; behind {
		return was
	}
	return w.contents[rollout.SourceRef{Namespace: ns, Source: s}]
}

func (w *world) Written(ns string, s checksum.Source) (written, created time.Time) {
	return w.written[rollout.SourceRef{Namespace: ns, Source: s}], time.Unix(0, 0)
}

// counts are the plan's.
func (w *world) counts() (n rollout.Counts) {
	w.controller.planned(func(p *rollout.Planner) { n = p.Counts() })
	return n
}
