package pods

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/podtruth"
	"github.com/configstamp/configstamp/internal/workload"
)

// Random edits, crashes, halts, take-backs, leaders and watches that break, in a model of what
// kubelets do. What the room says of each pod is compared with what its containers hold.

// version is one that a ConfigMap had.
type version struct {
	from    time.Time
	data    map[string]string
	written time.Time
	content *checksum.Content
}

// entry is one of managedFields.
type entry struct {
	keys map[string]bool
	at   time.Time
}

// configMap is one, with its past.
type configMap struct {
	checksum.Source
	versions []version
	owners   map[string]*entry
	seen     int // the version that the leader's cache holds
}

func (c *configMap) now() *version { return &c.versions[len(c.versions)-1] }

func (c *configMap) at(moment time.Time) *version {
	for i := len(c.versions) - 1; i > 0; i-- {
		if !c.versions[i].from.After(moment) {
			return &c.versions[i]
		}
	}
	return &c.versions[0]
}

// write makes a new version. managedFields are as the API server keeps them: who sets a key
// takes it, and a key that is removed leaves nothing.
func (c *configMap) write(now time.Time, by string, data map[string]string, annotation bool) {
	if c.owners == nil {
		c.owners = map[string]*entry{}
	}
	was := map[string]string{}
	if len(c.versions) > 0 {
		was = c.now().data
	}
	mine := c.owners[by]
	for key, value := range data {
		if old, had := was[key]; had && old == value {
			continue
		}
		if mine == nil {
			mine = &entry{keys: map[string]bool{}}
			c.owners[by] = mine
		}
		for _, owner := range c.owners {
			delete(owner.keys, key)
		}
		mine.keys[key], mine.at = true, now
	}
	for key := range was {
		if _, still := data[key]; !still {
			for _, owner := range c.owners {
				delete(owner.keys, key)
			}
		}
	}
	if annotation && mine != nil {
		mine.at = now
	}
	var written time.Time
	for name, owner := range c.owners {
		switch {
		case len(owner.keys) == 0:
			delete(c.owners, name)
		case owner.at.After(written):
			written = owner.at
		}
	}
	content := checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: data})
	if len(c.versions) > 0 && content.SameEntries(c.now().content) {
		content = c.now().content // as the store does
	}
	c.versions = append(c.versions, version{now, data, written.Truncate(time.Second), content})
}

// container is one that runs in a pod.
type container struct {
	name     string
	started  time.Time // really
	restarts int
	mounted  time.Time                 // its volume
	refresh  time.Time                 // when its files are refreshed next
	holds    map[int]map[string]string // data, by place in world.sources
}

type pod struct {
	name, hash string
	number     int
	stamps     map[string]string
	stamped    time.Time
	created    time.Time
	skew       time.Duration // of its node
	containers []*container
	due        time.Time // when its last event arrives at the leader
	pending    bool
}

type app struct {
	name   string
	stamps map[string]string
	made   time.Time // the template
	hash   int
	pods   []*pod
	held   bool
	rolls  time.Time
	want   int
}

type world struct {
	*rand.Rand
	t       *testing.T
	clock   *clocktesting.FakeClock // the leader's
	skew    time.Duration           // of the leader's clock
	now     time.Time
	settle  time.Duration
	lag     time.Duration
	edits   float64 // an hour
	kinds   workload.Table
	sources []*configMap
	apps    []*app
	ring    *checksum.Ring
	room    *Room
	broken  time.Time // until when the watch of sources is broken
	listed  time.Time
	pods    int
	seen    map[podtruth.State]int
	plugin  map[string]int
	excused map[string]int
}

func (w *world) Content(_ string, source checksum.Source) *checksum.Content {
	c := w.find(source)
	return c.versions[c.seen].content
}

func (w *world) Written(_ string, source checksum.Source) (written, created time.Time) {
	c := w.find(source)
	return c.versions[c.seen].written, c.versions[0].from.Truncate(time.Second)
}

func (w *world) Listed(string, checksum.Kind) time.Time { return w.listed }

func (w *world) LastProgress() time.Time {
	if w.now.Before(w.broken) {
		return w.broken.Add(-time.Minute)
	}
	return w.clock.Now().Add(-5 * time.Second)
}

func (w *world) find(source checksum.Source) *configMap {
	return w.sources[slices.IndexFunc(w.sources, func(c *configMap) bool { return c.Source == source })]
}

// spec is what every pod is made from: variables by key and of all keys, a file, files.
func spec() *corev1.PodSpec {
	name := func(n string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: n} }
	key := func(source, key string) []corev1.EnvVar {
		return []corev1.EnvVar{{Name: "V", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: name(source), Key: key}}}}
	}
	return &corev1.PodSpec{
		Volumes: []corev1.Volume{
			{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: name("s2")}}},
			{Name: "w", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: name("s3")}}},
		},
		Containers: []corev1.Container{
			{Name: "keys", Env: key("s0", "a")},
			{Name: "all", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: name("s1")}}}},
			{Name: "file", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/f", SubPath: "a"}}},
			{Name: "live", VolumeMounts: []corev1.VolumeMount{{Name: "w", MountPath: "/f"}}},
		},
	}
}

// reads is what a container selects of a source.
func reads(container string, data map[string]string) map[string]string {
	if container == "all" || container == "live" {
		return data
	}
	return map[string]string{"a": data["a"]}
}

var uses = []struct {
	container string
	source    int
}{{"keys", 0}, {"all", 1}, {"file", 2}, {"live", 3}}

func newWorld(t *testing.T, seed uint64, settle, lag time.Duration) *world {
	t.Helper()
	key, err := checksum.NewKey([]byte(strings.Repeat("k", checksum.KeySize)))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), t: t, now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), settle: settle, lag: lag, edits: 20, kinds: workload.Builtin(),
		ring: checksum.NewRing(key), seen: map[podtruth.State]int{}, plugin: map[string]int{}, excused: map[string]int{}}
	w.skew = w.between(-1500*time.Millisecond, 1500*time.Millisecond)
	w.clock = clocktesting.NewFakeClock(w.now.Add(w.skew))
	for i := range 4 {
		c := &configMap{Source: checksum.Source{Kind: checksum.ConfigMap, Name: fmt.Sprint("s", i)}}
		c.write(w.now.Add(-time.Hour), "apply", map[string]string{"a": "1", "b": "1"}, false)
		w.sources = append(w.sources, c)
	}
	w.room = New(Options{Sources: w, Ring: func() *checksum.Ring { return w.ring }, Wanted: func(string) bool { return true },
		Policy: func([]workload.Ref) (checksum.Policy, bool) { return checksum.DefaultPolicy(), true }, Kinds: w.kinds, Settle: settle, Clock: w.clock})
	w.room.begin(true)
	for i := range 4 {
		a := &app{name: fmt.Sprint("app", i), want: 3}
		w.apps = append(w.apps, a)
		w.stamp(a)
	}
	return w
}

func (w *world) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.Int64N(int64(high-low)+1))
}

func (w *world) chance(perHour float64) bool { return w.Float64() < perHour/3600*step.Seconds() }

const step = 500 * time.Millisecond

// stamp makes a template with true stamps.
func (w *world) stamp(a *app) {
	a.hash++
	a.made = w.now
	a.stamps = map[string]string{}
	for _, s := range checksum.Selections(checksum.References(spec()), checksum.DefaultPolicy()) {
		a.stamps[checksum.StampKey(s.Source)] = w.ring.Digest("shop", s, w.find(s.Source).now().content)
	}
}

func (w *world) stale(a *app) bool {
	for _, s := range checksum.Selections(checksum.References(spec()), checksum.DefaultPolicy()) {
		if a.stamps[checksum.StampKey(s.Source)] != w.ring.Digest("shop", s, w.find(s.Source).now().content) {
			return true
		}
	}
	return false
}

// start has a container read what its kubelet has.
func (w *world) start(c *container, lag time.Duration) {
	c.started = w.now
	if c.name == "live" && c.restarts > 0 {
		return // its volume is the pod's
	}
	if c.restarts == 0 {
		c.mounted = w.now
	}
	c.holds, c.refresh = map[int]map[string]string{}, w.now.Add(w.between(60*time.Second, 90*time.Second))
	for _, use := range uses {
		if use.container == c.name {
			of := lag
			if c.name == "file" && c.restarts > 0 {
				of = min(w.between(0, 2*time.Minute), w.now.Sub(c.mounted)+lag)
			}
			c.holds[use.source] = reads(c.name, w.sources[use.source].at(w.now.Add(-of)).data)
		}
	}
}

func (w *world) addPod(a *app) {
	w.pods++
	p := &pod{name: fmt.Sprintf("%s-%d-%d", a.name, a.hash, w.pods), hash: fmt.Sprint(a.hash), number: w.pods, stamps: a.stamps, stamped: a.made, created: w.now,
		skew: w.between(-1500*time.Millisecond, 1500*time.Millisecond)}
	for _, name := range []string{"keys", "all", "file", "live"} {
		p.containers = append(p.containers, &container{name: name})
	}
	a.pods = append(a.pods, p)
	p.changed(w)
}

func (p *pod) changed(w *world) {
	p.pending, p.due = true, w.now.Add(w.between(0, 2*time.Second))
}

// tell brings the leader what is due.
func (w *world) tell(a *app, p *pod) {
	if !p.pending || w.now.Before(p.due) {
		return
	}
	p.pending = false
	w.room.told(w.room.condense(w.read(a, p)), false)
}

func (w *world) read(a *app, p *pod) *workload.RunningPod {
	yes := true
	read := &workload.RunningPod{Created: p.created.Truncate(time.Second), Hash: p.hash, Stamps: p.stamps, Spec: spec(),
		Owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: a.name + "-" + p.hash, Controller: &yes}}
	read.Namespace, read.Name, read.UID = "shop", p.name, types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", p.number))
	for _, c := range p.containers {
		one := workload.RunningContainer{Name: c.name, Restarted: c.restarts > 0}
		if !c.started.IsZero() {
			one.Started = c.started.Add(p.skew).Truncate(time.Second)
		}
		read.Containers = append(read.Containers, one)
	}
	return read
}

// someEdit changes a ConfigMap in one of the ways in which people do.
func (w *world) someEdit() {
	c := w.sources[w.IntN(len(w.sources))]
	data, by := maps.Clone(c.now().data), []string{"apply", "edit", "bot"}[w.IntN(3)]
	switch w.IntN(8) {
	case 0, 1, 2:
		data["a"] = fmt.Sprint(w.IntN(4))
	case 3:
		data["b"] = fmt.Sprint(w.IntN(4))
	case 4:
		data["c"] = fmt.Sprint(w.IntN(3))
	case 5:
		delete(data, "c")
	case 6: // taken back
		data = c.versions[max(0, len(c.versions)-2)].data
	case 7:
		c.write(w.now, by, data, true)
		return
	}
	if !maps.Equal(data, c.now().data) {
		c.write(w.now, by, data, false)
	}
}

func (w *world) pass() {
	w.now = w.now.Add(step)
	w.clock.SetTime(w.now.Add(w.skew))
	if w.chance(w.edits) {
		w.someEdit()
		if w.chance(3600) { // soon another one
			w.someEdit()
		}
	}
	for _, a := range w.apps {
		w.passApp(a)
	}
	w.watch()
}

func (w *world) passApp(a *app) {
	if w.chance(4) {
		a.held = !a.held // a halt, a pause, a window
	}
	switch stale := w.stale(a); {
	case !stale || a.held:
		a.rolls = time.Time{}
		if stale || !w.chance(2) {
			break
		}
		fallthrough // somebody changes the template together with a source
	case a.rolls.IsZero() && w.chance(120):
		w.stamp(a)
	case a.rolls.IsZero():
		a.rolls = w.now.Add(w.settle + w.between(0, 5*time.Second))
	case !w.now.Before(a.rolls):
		if last := w.lastEdit(); w.now.Sub(last) < w.settle { // it rests from the last edit
			a.rolls = last.Add(w.settle)
			break
		}
		a.rolls = time.Time{}
		w.stamp(a)
	}
	for i := 0; i < len(a.pods); i++ {
		p := a.pods[i]
		old := p.hash != fmt.Sprint(a.hash) && w.chance(400)
		if old || w.chance(1) {
			a.pods = slices.Delete(a.pods, i, i+1)
			w.room.told(&arrived{uid: uidOf(fmt.Appendf(nil, "00000000-0000-0000-0000-%012d", p.number)), namespace: "shop"}, true)
			i--
			continue
		}
		w.passPod(p)
		w.tell(a, p)
	}
	if w.chance(2) {
		a.want = 1 + w.IntN(5)
	}
	fresh := 0
	for _, p := range a.pods {
		if p.hash == fmt.Sprint(a.hash) {
			fresh++
		}
	}
	if fresh < a.want && w.chance(2000) {
		w.addPod(a)
	}
}

func (w *world) lastEdit() (last time.Time) {
	for _, c := range w.sources {
		if from := c.now().from; from.After(last) {
			last = from
		}
	}
	return last
}

func (w *world) passPod(p *pod) {
	for _, c := range p.containers {
		switch {
		case c.name == "live" && !c.started.IsZero() && w.now.After(c.refresh):
			c.refresh = w.now.Add(w.between(60*time.Second, 90*time.Second))
			c.holds[3] = reads(c.name, w.sources[3].at(w.now.Add(-w.between(0, time.Minute))).data)
		case c.started.IsZero() && w.chance(3000):
			w.start(c, w.between(0, w.lag))
			p.changed(w)
		case !c.started.IsZero() && w.chance(1):
			c.restarts++
			w.start(c, w.between(0, w.lag))
			p.changed(w)
		}
	}
}

// watch brings the leader the edits, in order and late, and breaks now and then.
func (w *world) watch() {
	switch {
	case w.chance(0.7): // another leader
		w.room.begin(true)
		w.list()
		for _, a := range w.apps {
			for _, p := range a.pods {
				p.changed(w)
			}
		}
	case w.chance(2) && !w.now.Before(w.broken):
		w.broken = w.now.Add(w.between(0, time.Minute))
	case w.now.Before(w.broken):
		if !w.now.Add(step).Before(w.broken) {
			w.list()
		}
	default:
		for _, c := range w.sources {
			if c.seen+1 < len(c.versions) && w.now.Sub(c.versions[c.seen+1].from) > w.between(0, 3*time.Second) {
				c.seen++
				w.room.Edited("shop", c.Source, nil)
			}
		}
	}
}

func (w *world) list() {
	w.listed = w.clock.Now()
	for _, c := range w.sources {
		c.seen = len(c.versions) - 1
	}
	for _, c := range w.sources {
		w.room.Edited("shop", c.Source, nil)
	}
}

// check compares what the room says of each pod with what its containers hold.
func (w *world) check() {
	w.room.count(w.clock.Now())
	if w.now.Before(w.broken) || slices.ContainsFunc(w.sources, func(c *configMap) bool { return c.seen+1 < len(c.versions) }) {
		return // what it knows is a moment old
	}
	for _, a := range w.apps {
		for _, p := range a.pods {
			kept, known := w.room.pods["shop"][uidOf(fmt.Appendf(nil, "00000000-0000-0000-0000-%012d", p.number))]
			if !known || p.pending {
				continue
			}
			j := w.room.judge(w.ring, kept.group)
			j.put(&kept)
			answer := w.room.rules.Judge(&j.pod, w.clock.Now())
			w.seen[answer.State]++
			w.compare(p, j, answer)
		}
	}
}

func (w *world) compare(p *pod, j *judged, answer podtruth.Answer) {
	lacks, holds, extra, before := 0, 0, true, false
	for i, use := range uses {
		c := p.containers[i]
		if c.started.IsZero() {
			continue
		}
		before = before || c.started.Add(p.skew).Before(j.pod.Sources[use.source].Since.Add(podtruth.Skew))
		now := reads(c.name, w.sources[use.source].now().data)
		if maps.Equal(c.holds[use.source], now) {
			holds++
			continue
		}
		lacks++
		for key, value := range now {
			extra = extra && c.holds[use.source][key] == value
		}
	}
	w.asPlugin(p, j, lacks, extra)
	switch {
	case answer.State == podtruth.Current && lacks > 0 && before && extra:
		w.excused["a key was added and removed before the leader watched"]++
	case (answer.State == podtruth.Old || answer.State == podtruth.Mixed) && lacks == 0 && before:
		w.excused["it was called old, or mixed, after two writes before the leader watched"]++
	case answer.State == podtruth.Current && lacks > 0, (answer.State == podtruth.Old || answer.State == podtruth.Mixed) && lacks == 0:
		w.t.Errorf("%s: pod %s is called %s", w.now.Format(time.TimeOnly), p.name, answer)
		w.dump(p, j)
	}
}

// dump tells all of a pod.
func (w *world) dump(p *pod, j *judged) {
	for i, use := range uses {
		c := p.containers[i]
		w.t.Errorf("  %s: started %s (restarted %d times), holds %v, %v now; %+v, proven %v", c.name, c.started.Format(time.StampMilli), c.restarts, c.holds, w.sources[use.source].now().data, j.pod.Sources[use.source], j.pod.Proven)
		for _, v := range w.sources[use.source].versions[max(0, len(w.sources[use.source].versions)-4):] {
			w.t.Errorf("    %s: %v written %s", v.from.Format(time.StampMilli), v.data, v.written.Format(time.TimeOnly))
		}
	}
}

// asPlugin is what somebody says who has seen nothing himself.
func (w *world) asPlugin(p *pod, j *judged, lacks int, extra bool) {
	unseen := j.pod
	unseen.Proven, unseen.Sources = nil, slices.Clone(j.pod.Sources)
	for i := range unseen.Sources {
		s := &unseen.Sources[i]
		s.Since, s.Still, s.Written = time.Time{}, time.Time{}, w.find(s.Source).now().written
		s.Stamped, s.Blurred = p.stamped.Truncate(time.Second), true
	}
	answer := w.room.rules.Judge(&unseen, w.now)
	w.plugin[answer.State.String()]++
	switch {
	case answer.State == podtruth.Current && lacks > 0 && extra:
		w.plugin["current though it has a key that was removed"]++
	case answer.State == podtruth.Current && lacks > 0:
		w.t.Errorf("%s: the plugin says %s", w.now.Format(time.TimeOnly), answer)
		w.dump(p, j)
	case (answer.State == podtruth.Old || answer.State == podtruth.Mixed) && lacks == 0:
		w.plugin["old or mixed though all have it"]++
	}
}

func TestSimulation(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long, and has one goroutine: make unit runs it without the race detector")
	}
	seeds := uint64(4)
	if long := os.Getenv("CONFIGSTAMP_SEEDS"); long != "" {
		var err error
		if seeds, err = strconv.ParseUint(long, 10, 32); err != nil {
			t.Fatal(err)
		}
	}
	for sentence, edits := range map[string]float64{"an edit every three minutes": 20, "an edit an hour": 1} {
		t.Run(sentence, func(t *testing.T) {
			seen, excused, plugin, all := map[podtruth.State]int{}, map[string]int{}, map[string]int{}, 0
			for seed := range seeds {
				w := simulated(t, seed, edits)
				for state, n := range w.seen {
					seen[state] += n
					all += n
				}
				add(plugin, w.plugin)
				add(excused, w.excused)
			}
			for _, state := range podtruth.States() {
				t.Logf("%s: %.1f %%", state, 100*float64(seen[state])/float64(all))
			}
			t.Logf("of %d looks at pods: %v; by who has seen nothing: %v", all, excused, plugin)
		})
	}
}

func add(all, some map[string]int) {
	for what, n := range some {
		all[what] += n
	}
}

// simulated is a world in which two hours have passed.
func simulated(t *testing.T, seed uint64, edits float64) *world {
	t.Helper()
	settle, lag := 2*time.Second, time.Second
	if seed%2 == 1 { // a cluster with slow kubelets
		settle, lag = 6*time.Second, 5*time.Second
	}
	w := newWorld(t, seed, settle, lag)
	w.edits = edits
	for range 2 * int(time.Hour/step) {
		if w.pass(); w.now.Truncate(5 * time.Second).Equal(w.now) {
			w.check()
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	return w
}
