package collect

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/snapshot"
	"github.com/configstamp/configstamp/internal/snapshot/archive"
)

var (
	seeds     = flag.Uint64("seeds", 30, "how many seeds TestNothingNamedIsEverDeleted takes")
	firstSeed = flag.Uint64("seed", 1, "the first of them")
)

// world is a namespace in which people edit, roll, undo and delete, all at once; two webhooks
// make snapshots, and a leader collects them.
type world struct {
	*api
	t        *testing.T
	seed     uint64
	ring     *checksum.Ring
	webhooks []*archive.Archive
	sources  []checksum.Source
	persons  bool // somebody deletes snapshots

	made                        int
	deletions, raced, persisted int
	missing                     map[string]time.Time // named, and not there, since
	bySomebody                  map[string]bool
}

const (
	simGrace    = time.Minute
	simInterval = 5 * time.Second
	simLasts    = 15 * time.Minute
)

// TestNothingNamedIsEverDeleted runs the archives of two webhooks and a collector against an
// API server, with watches that are late, requests that take a while in both directions,
// lists that fail, and leaders that change.
// go test ./internal/collect -run TestNothingNamed -seed=17 -seeds=1 repeats a seed.
func TestNothingNamedIsEverDeleted(t *testing.T) {
	sum, seeds := map[string]int{}, *seeds
	if testing.Short() {
		seeds = min(seeds, 3)
	}
	for seed := *firstSeed; seed < *firstSeed+seeds; seed++ {
		synctest.Test(t, func(t *testing.T) { simulate(t, seed, sum) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("seeds %d to %d: %v", *firstSeed, *firstSeed+seeds-1, sum)
	if sum["deleted"] == 0 {
		t.Error("nothing was ever deleted: the test proves nothing")
	}
}

func simulate(t *testing.T, seed uint64, sum map[string]int) {
	material := make([]byte, checksum.KeySize)
	material[0] = byte(seed)
	key, err := checksum.NewKey(material)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{api: newAPI(seed), t: t, seed: seed, ring: checksum.NewRing(key), missing: map[string]time.Time{}, bySomebody: map[string]bool{}, persons: seed%3 == 0}
	w.deleted = w.onDelete
	w.failing = []float64{0, .02, .3}[seed%3]
	ring := func() *checksum.Ring { return w.ring }
	slowest := []time.Duration{10 * time.Millisecond, time.Second, 5 * time.Second}[seed%3]
	lag := func() time.Duration { return w.upTo(slowest) }
	for range 2 {
		v := w.view(lag)
		a, err := archive.New(w.config(), archive.Options{Store: v, Ring: ring, Clock: clock.RealClock{}})
		if err != nil {
			t.Fatal(err)
		}
		w.webhooks = append(w.webhooks, a)
	}
	leader := w.view(lag)
	own, err := archive.New(w.config(), archive.Options{Store: leader, Ring: ring, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	tell := func(*corev1.ObjectReference, reason.Reason, string) {}
	collector, err := New(w.config(), Options{
		Store: leader, Archive: own, Ring: ring, Tell: tell, Clock: clock.RealClock{},
		Bounds: snapshot.Bounds{Keep: int(seed % 2), Grace: simGrace}, Interval: simInterval,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range w.views {
		go v.run()
	}
	ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), logr.Discard()), simLasts)
	defer cancel()
	w.begin()
	var acting sync.WaitGroup
	for _, act := range []struct {
		every time.Duration
		do    func(context.Context)
	}{
		{20 * time.Second, w.edit}, {10 * time.Second, w.roll}, {10 * time.Second, w.roll}, {25 * time.Second, w.undo},
		{2 * time.Second, w.revise}, {2 * time.Second, w.start}, {1500 * time.Millisecond, w.stop}, {100 * time.Millisecond, w.check},
		{90 * time.Second, w.purge},
	} {
		acting.Go(func() {
			for ctx.Err() == nil {
				if time.Sleep(w.upTo(2 * act.every)); ctx.Err() == nil {
					act.do(context.WithoutCancel(ctx))
				}
			}
		})
	}
	for ctx.Err() == nil { // leaders change
		leads, end := context.WithTimeout(ctx, w.upTo(10*time.Minute))
		collector.Run(leads)
		end()
	}
	acting.Wait()
	time.Sleep(5 * time.Minute) // what is under way ends
	for _, v := range w.views {
		close(v.queue)
	}
	synctest.Wait()
	sum["deleted"] += w.deletions
	sum["deleted while they became today's"] += w.raced
	sum["written"] += w.persisted
	sum["snapshots"] += w.made
	for method, n := range w.counts {
		sum[method] += n
	}
}

func (w *world) begin() {
	for i := range 2 {
		of := checksum.Source{Kind: checksum.ConfigMap, Name: fmt.Sprint("web-", i)}
		w.sources = append(w.sources, of)
		w.write(of, 0)
	}
	for i, change := range []func(*corev1.ConfigMap){ // what only looks like snapshots
		func(s *corev1.ConfigMap) { s.Data["key"] = "other" },
		func(s *corev1.ConfigMap) { s.Immutable = nil },
		func(s *corev1.ConfigMap) { s.BinaryData = map[string][]byte{"more": {1}} },
	} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}, Data: map[string]string{"key": fmt.Sprint("old ", i)}}
		cm = snapshot.Of(cm, w.ring.SnapshotName("shop", w.sources[0], checksum.ContentOfConfigMap(cm)), time.Unix(int64(i), 0))
		change(cm)
		w.mu.Lock()
		w.put(cm)
		w.mu.Unlock()
	}
	for i := range 3 {
		w.set("deployments", fmt.Sprint("app-", i), &object{uid: fmt.Sprint("app-", i)})
		w.set("statefulsets", fmt.Sprint("db-", i), &object{uid: fmt.Sprint("db-", i)})
	}
}

func (w *world) write(of checksum.Source, value int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: of.Name}, Data: map[string]string{"key": fmt.Sprint("value ", value)}})
}

func (w *world) set(resource, name string, o *object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o.born = time.Now()
	if w.objects[resource] == nil {
		w.objects[resource] = map[string]*object{}
	}
	w.objects[resource][name] = o
	w.persisted++
}

// any picks one at random, "" when there is none.
func (w *world) any(resources ...string) (resource, name string, o *object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	resource = resources[w.rand.IntN(len(resources))]
	names := slices.Sorted(maps.Keys(w.objects[resource]))
	if len(names) == 0 {
		return resource, "", nil
	}
	name = names[w.rand.IntN(len(names))]
	return resource, name, w.objects[resource][name]
}

// edit changes a source: mostly to what it held before, and sometimes twice in a moment.
func (w *world) edit(context.Context) {
	of := w.sources[w.upTo(2)-1]
	for again := true; again; again = w.chance(.3) {
		if w.chance(.05) {
			w.mu.Lock()
			if w.maps[of.Name] != nil {
				w.remove(of.Name)
			}
			w.mu.Unlock()
			time.Sleep(w.upTo(5 * time.Second))
		}
		w.write(of, int(w.upTo(6)))
		time.Sleep(w.upTo(2 * time.Second))
	}
}

func (w *world) webhook() *archive.Archive { return w.webhooks[w.upTo(2)-1] }

// roll is an admission of a changed template: what the sources hold is read at this moment,
// and made sure of; then others' webhooks take their time.
func (w *world) roll(ctx context.Context) {
	resource, name, _ := w.any("deployments", "statefulsets")
	names := map[checksum.Source]string{}
	w.mu.Lock()
	for _, of := range w.sources {
		if cm := w.maps[of.Name]; cm != nil {
			names[of] = w.ring.SnapshotName("shop", of, checksum.ContentOfConfigMap(cm))
		}
	}
	w.mu.Unlock()
	for of := range w.webhook().EnsureAll(ctx, "shop", names) {
		delete(names, of)
	}
	w.mu.Lock()
	w.made += len(names)
	w.mu.Unlock()
	w.store(resource, name, names)
}

func (w *world) store(resource, name string, names map[checksum.Source]string) {
	slowest := 3 * time.Second
	if w.chance(.3) { // others' webhooks hang
		slowest = 30 * time.Second
	}
	time.Sleep(w.upTo(slowest))
	pins := map[string]string{}
	for of, name := range names {
		pins[of.String()] = name + " startup,live"
	}
	w.set(resource, name, &object{uid: name, pins: pins})
}

// undo brings the pins of a revision back, if its snapshots are there.
func (w *world) undo(ctx context.Context) {
	resource, _, o := w.any("replicasets", "controllerrevisions")
	if o == nil || len(o.pins) == 0 {
		return
	}
	a, names := w.webhook(), map[checksum.Source]string{}
	for text, value := range o.pins {
		of, _ := checksum.ParseSource(text)
		name, _, _ := strings.Cut(value, " ")
		if content, err := a.Content(ctx, "shop", name, of); err != nil || content == nil {
			return
		}
		names[of] = name
	}
	if len(a.EnsureAll(ctx, "shop", names)) > 0 {
		return
	}
	w.store(map[string]string{"replicasets": "deployments", "controllerrevisions": "statefulsets"}[resource], o.owner, names)
}

// revise is the controllers' work, on what they saw a while ago: a revision for each template,
// and no more than two old ones.
func (w *world) revise(context.Context) {
	resource, name, o := w.any("deployments", "statefulsets")
	time.Sleep(w.upTo(4 * time.Second))
	of := map[string]string{"deployments": "replicasets", "statefulsets": "controllerrevisions"}[resource]
	revision := name + "-" + fmt.Sprint(o.born.UnixNano())
	w.mu.Lock()
	_, there := w.objects[of][revision]
	w.mu.Unlock()
	if !there {
		w.set(of, revision, &object{uid: revision, owner: name, pins: o.pins})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var revisions []string
	for other, r := range w.objects[of] {
		if r.owner == name {
			revisions = append(revisions, other)
		}
	}
	slices.SortFunc(revisions, func(x, y string) int { return w.objects[of][x].born.Compare(w.objects[of][y].born) })
	for _, old := range revisions[:max(len(revisions)-3, 0)] {
		delete(w.objects[of], old)
	}
}

// start makes a Pod of a revision: the webhook gives it those snapshots that are there.
func (w *world) start(ctx context.Context) {
	_, _, o := w.any("replicasets", "controllerrevisions")
	if o == nil {
		return
	}
	a, pinned := w.webhook(), map[string]string{}
	for text, value := range o.pins {
		of, _ := checksum.ParseSource(text)
		name, _, _ := strings.Cut(value, " ")
		if content, err := a.Content(ctx, "shop", name, of); err == nil && content != nil {
			pinned[text] = name
		}
	}
	time.Sleep(w.upTo(time.Second))
	w.mu.Lock()
	n := w.persisted
	w.mu.Unlock()
	w.set("pods", fmt.Sprint("pod-", n), &object{uid: fmt.Sprint("pod-", n), owner: o.uid, pins: pinned})
}

// stop deletes a Pod. Some outlive their revisions.
func (w *world) stop(context.Context) {
	if _, name, o := w.any("pods"); o != nil && (!strings.HasSuffix(name, "0") || time.Since(o.born) > 5*time.Minute) {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.objects["pods"], name)
	}
}

// purge is somebody who deletes a snapshot.
func (w *world) purge(context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.persons {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.maps)) {
		if checksum.LooksLikeSnapshot(name) && w.rand.IntN(3) == 0 {
			w.bySomebody[name] = true
			w.remove(name)
			return
		}
	}
}

// naming are the objects that name a snapshot; the caller holds the lock.
func (w *world) naming(snapshot string) (all []string) {
	for resource, objects := range w.objects {
		for name, o := range objects {
			for _, value := range o.pins {
				if first, _, _ := strings.Cut(value, " "); first == snapshot {
					all = append(all, resource+"/"+name)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// onDelete judges what the collector is about to delete; the caller holds the lock.
func (w *world) onDelete(cm *corev1.ConfigMap) {
	w.deletions++
	delete(w.bySomebody, cm.Name)
	is, ok := snapshot.From(cm)
	if !ok || !is.Verified(w.ring) {
		w.t.Errorf("seed %d: %s is deleted, and is no snapshot of ours", w.seed, cm.Name)
		return
	}
	if source := w.maps[is.Of.Name]; source != nil && checksum.ContentOfConfigMap(source).SameEntries(is.Content) {
		w.raced++ // an edit came between the last look and this; check sees whether it is made again
		return
	}
	if by := w.naming(cm.Name); len(by) > 0 {
		w.t.Errorf("seed %d, %s: %s is deleted, and named by %v", w.seed, time.Now().Format("15:04:05.000"), cm.Name, by)
	}
}

// bearable is for how long something may name a snapshot that the collector has deleted while
// its source went back to that content: the watches' lag, the wait, and some requests.
const bearable = 20 * time.Second

// holds reports whether a source holds what a name stands for; the caller holds the lock.
func (w *world) holds(text, name string) bool {
	of, err := checksum.ParseSource(text)
	source := w.maps[of.Name]
	return err == nil && source != nil && w.ring.NamesSnapshot("shop", of, checksum.ContentOfConfigMap(source), name)
}

// check looks for names of snapshots that are not there.
func (w *world) check(context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	missing := map[string]bool{}
	for _, objects := range w.objects {
		for _, o := range objects {
			for of, value := range o.pins {
				if name, _, _ := strings.Cut(value, " "); w.maps[name] == nil && (!w.bySomebody[name] || w.failing == 0 && w.holds(of, name)) {
					missing[name] = true
				}
			}
		}
	}
	for name := range missing {
		since, known := w.missing[name]
		if !known {
			w.missing[name] = time.Now()
		} else if time.Since(since) > bearable {
			w.t.Errorf("seed %d, %s: %s is gone, and named by %v", w.seed, time.Now().Format("15:04:05.000"), name, w.naming(name))
			w.missing[name] = time.Now() // do not say it all the time
		}
	}
	maps.DeleteFunc(w.missing, func(name string, _ time.Time) bool { return !missing[name] })
}
