package controller

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/forecast"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

var (
	foreseenSeeds = flag.Int("foreseen-seeds", 25, "how many clusters TestForecast_IsWhatThenRolls takes")
	foreseenSeed  = flag.Uint64("foreseen-seed", 1, "the first of them")
)

const (
	foreseenApps  = 40
	foreseenEdits = 20 // of each cluster
)

// foreseen is a world whose future is foretold. Nothing fails in it.
type foreseen struct {
	*world
	draw    *rand.Rand
	sources []rollout.SourceRef
	whole   bool           // sources lack no key
	counts  map[string]int // of what was seen
	told    map[checksum.Reason]int
}

// TestForecast_IsWhatThenRolls edits sources at random, in clusters of every policy and
// use, and compares what was foreseen with what the whole controller then does: who rolls,
// in which order, at what time and in which steps. It asks twice: with the digest key, and
// without key and content.
func TestForecast_IsWhatThenRolls(t *testing.T) {
	counts, told := map[string]int{}, map[checksum.Reason]int{}
	for seed := *foreseenSeed; seed < *foreseenSeed+uint64(*foreseenSeeds); seed++ {
		f := newForeseen(t, seed)
		f.counts, f.told = counts, told
		for n := range foreseenEdits {
			f.oneEdit(fmt.Sprintf("seed %d, edit %d", seed, n))
		}
	}
	t.Logf("%v; %v", counts, told)
	if exact := counts["foreseen to the second"]; 100*exact < 98*counts["edits"] {
		t.Errorf("of %d edits %d came at other times than was foreseen", counts["edits"], counts["edits"]-exact) // equals draw lots
	}
	if first := counts["first"]; first == 0 || 100*counts["as many first as foreseen"] < 99*first {
		t.Errorf("of %d times %d rolled first as many as was foreseen", first, counts["as many first as foreseen"]) // an edit may release older changes
	}
	for _, why := range []checksum.Reason{
		checksum.KeyNotUsed, checksum.UseLeftOut, checksum.SourceLeftOut, checksum.Paused, checksum.ObserveMode,
		checksum.OptedOut, checksum.MissingSource, checksum.MissingKey, checksum.UnreadableSetting, checksum.Recorded,
	} {
		if told[why] == 0 {
			t.Errorf("nothing was seen of %s", why)
		}
	}
}

func newForeseen(t *testing.T, seed uint64) *foreseen {
	t.Helper()
	f := &foreseen{world: newWorld(t), draw: rand.New(rand.NewPCG(seed, seed))}
	f.whole = seed%2 == 0
	f.records, f.settings = true, map[string]map[string]string{}
	f.limits.Unsettled = rollout.Number(2 + f.draw.IntN(12))
	f.limits.UnsettledPerNamespace = rollout.PerNamespace(f.limits.Unsettled.Slots(0), 0)
	f.limits.Step = 1 + f.draw.IntN(8)/7
	f.limits.Settle = settle
	if f.draw.IntN(2) == 0 {
		f.limits.FirstSoak = 30 * time.Second
	}
	f.clock.Step(time.Duration(f.draw.IntN(24*60)) * time.Minute)
	for _, namespace := range []string{"shop", "billing"} {
		for _, kind := range []checksum.Kind{checksum.ConfigMap, checksum.Secret} {
			for n := range 4 {
				at := rollout.SourceRef{Namespace: namespace, Source: checksum.Source{Kind: kind, Name: "s" + strconv.Itoa(n)}}
				f.sources = append(f.sources, at)
				f.contents[at] = f.content()
				if f.draw.IntN(8) == 0 {
					f.contents[at] = nil
				}
			}
		}
		if f.draw.IntN(4) == 0 {
			f.settings[namespace] = f.setting()
		}
	}
	for n := range foreseenApps {
		f.app(n)
	}
	f.lead()
	f.pass(time.Hour)
	for _, app := range f.apps {
		app.edits = 1000 // it may roll: what does is compared
	}
	return f
}

// setting is some policy, often none.
func (f *foreseen) setting() map[string]string {
	all := []map[string]string{
		{"configstamp.dev/only": "configmap/*"}, {"configstamp.dev/ignore": "secret/s1,configmap/s2"}, {"configstamp.dev/restart-on": "startup"},
		{"configstamp.dev/restart-on": "everything"}, {"configstamp.dev/mode": "observe"}, {"configstamp.dev/pause": "true"}, {"configstamp.dev/pause": "maybe"},
		{"configstamp.dev/window": "22:00-04:00 UTC"}, {"configstamp.dev/order": strconv.Itoa(f.draw.IntN(3))}, {"configstamp.dev/also": "configmap/s3"},
		{"configstamp.dev/min-interval": "1h"}, {"configstamp.dev/soak": "25s"},
	}
	return all[f.draw.IntN(len(all))]
}

// content has some of three keys.
func (f *foreseen) content() *checksum.Content {
	f.versions++
	data := map[string]string{}
	for _, key := range []string{"a", "b", "c"} {
		if f.whole || f.draw.IntN(6) > 0 {
			data[key] = strconv.Itoa(f.versions)
		}
	}
	var says map[string]string
	switch f.draw.IntN(12) {
	case 0:
		says = map[string]string{"configstamp.dev/ignore-keys": "c"}
	case 1:
		says = map[string]string{"configstamp.dev/ignore": "true"}
	}
	return checksum.ContentOfConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: says}, Data: data})
}

// app is a workload that uses some sources in some ways.
func (f *foreseen) app(n int) {
	app := &simulatedApp{user: workload.Ref{Kind: f.kind, Namespace: []string{"shop", "billing"}[f.draw.IntN(2)], Name: fmt.Sprintf("app-%02d", n)}}
	app.single, app.mute = f.draw.IntN(6) == 0, f.draw.IntN(12) == 0
	if f.draw.IntN(15) == 0 {
		app.labels = map[string]string{"configstamp.dev/inject": "disabled"}
	}
	if f.draw.IntN(3) == 0 {
		app.settings = f.setting()
	}
	container := map[string]any{"name": "app"}
	spec := map[string]any{"containers": []any{container}}
	for range 1 + f.draw.IntN(3) {
		f.use(app, spec, container)
	}
	app.spec = spec
	f.apps[app.user] = app
	f.names = append(f.names, app.user)
	if f.draw.IntN(10) > 0 { // else it was there before us, and has no record
		app.records = f.decideAt(app)
	}
}

// decideAt is what a creation is stamped with.
func (f *foreseen) decideAt(app *simulatedApp) checksum.Records {
	f.records = false
	defer func() { f.records = true }()
	return f.decide(app, checksum.Roller)
}

// use has a container use a source in some way.
func (f *foreseen) use(app *simulatedApp, spec, container map[string]any) {
	kind, name := "configMap", "s"+strconv.Itoa(f.draw.IntN(4))
	if f.draw.IntN(3) == 0 {
		kind = "secret"
	}
	source := checksum.Source{Kind: checksum.Kind(strings.ToLower(kind)), Name: name}
	app.sources = append(app.sources, source)
	optional, key := f.draw.IntN(3) == 0, []string{"a", "b", "c"}[f.draw.IntN(3)]
	push := func(in map[string]any, field string, value any) {
		list, _ := in[field].([]any)
		in[field] = append(list, value)
	}
	volume := map[string]any{"name": "v" + strconv.Itoa(f.draw.IntN(1e6)), kind: map[string]any{map[string]string{"configMap": "name", "secret": "secretName"}[kind]: name, "optional": optional}}
	switch f.draw.IntN(7) {
	case 0, 1:
		push(container, "envFrom", map[string]any{kind + "Ref": map[string]any{"name": name, "optional": optional}})
	case 2, 3:
		push(container, "env", map[string]any{"name": "V", "valueFrom": map[string]any{kind + "KeyRef": map[string]any{"name": name, "key": key, "optional": optional}}})
	case 4:
		push(spec, "volumes", volume)
		push(container, "volumeMounts", map[string]any{"name": volume["name"], "mountPath": "/live"})
	case 5:
		push(spec, "volumes", volume)
		push(container, "volumeMounts", map[string]any{"name": volume["name"], "mountPath": "/file", "subPath": key})
	case 6:
		push(spec, "imagePullSecrets", map[string]any{"name": name})
		app.sources[len(app.sources)-1].Kind = checksum.Secret
	}
}

// edit is what somebody does to one source, or to one of the same name in both namespaces.
func (f *foreseen) someEdits() (edits []forecast.Edit) {
	at := f.sources[f.draw.IntN(len(f.sources))]
	was, is := f.contents[at], f.content()
	switch {
	case was == nil:
	case f.draw.IntN(6) == 0:
		is = nil
	case f.draw.IntN(2) == 0: // some keys alone
		is = &checksum.Content{Entries: slices.Clone(was.Entries), Policy: was.Policy}
		for i := range is.Entries {
			if f.draw.IntN(2) == 0 {
				is.Entries[i].Sum[0]++
			}
		}
	}
	edits = []forecast.Edit{{At: at, Was: was, Is: is}}
	if f.draw.IntN(4) == 0 {
		other := f.sources[f.draw.IntN(len(f.sources))]
		if other != at {
			edits = append(edits, forecast.Edit{At: other, Was: f.contents[other], Is: f.content()})
		}
	}
	return edits
}

// question asks what comes of some edits of some workloads.
func (f *foreseen) question(edits []forecast.Edit, users []workload.Ref) *forecast.Question {
	c := f.controller
	q := &forecast.Question{Edits: edits, Now: f.clock.Now(), Limits: f.limits, CanRoll: lookup{c}.Workloads(), Ring: f.ring,
		Content: func(at rollout.SourceRef) *checksum.Content { return f.contents[at] }}
	q.Workloads = c.foreseen(users)
	for i := range q.Workloads {
		q.Workloads[i].Usually = 5 * time.Second
	}
	return q
}

// foretold is what is told in brief, as it is to who makes an edit.
func (f *foreseen) foretold(edits []forecast.Edit) (brief forecast.Brief) {
	if len(edits) > 1 {
		return f.question(edits, f.concerned(edits)).Brief()
	}
	brief, ready := f.controller.Foresee(edits[0])
	if !ready {
		f.t.Fatal("it does not know enough")
	}
	return brief
}

// concerned are the workloads that the index knows some edits to concern.
func (f *foreseen) concerned(edits []forecast.Edit) (users []workload.Ref) {
	for _, e := range edits {
		users = append(users, f.controller.index.Users(e.At.Namespace, e.At.Source)...)
	}
	slices.SortFunc(users, workload.Ref.Compare)
	return slices.Compact(users)
}

// supposed is the same question of somebody who has not the key, and who has read no
// content, or all.
func (f *foreseen) supposed(q *forecast.Question, reads bool) *forecast.Question {
	world, err := forecast.Suppose(q.Workloads, func(at rollout.SourceRef) forecast.Seen {
		switch content := f.contents[at]; {
		case content == nil:
			return forecast.Seen{Missing: true}
		case reads:
			return forecast.Seen{Content: content}
		default:
			return forecast.Seen{Policy: content.Policy}
		}
	})
	if err != nil {
		f.t.Fatal(err)
	}
	other := *q
	other.Edits, other.Workloads, other.Ring, other.Content = slices.Clone(q.Edits), world.Workloads, world.Ring, world.Content
	for i, e := range q.Edits {
		keys := changedKeys(e.Was, e.Is)
		switch {
		case reads:
		case e.Is == nil:
			other.Edits[i] = world.Deleted(e.At)
		case e.Was == nil:
			other.Edits[i] = world.Made(e.At)
		case len(keys) == 0:
			other.Edits[i].Was, other.Edits[i].Is = world.Content(e.At), world.Content(e.At)
		default:
			other.Edits[i] = world.Changed(e.At, keys...)
		}
	}
	return &other
}

// readable reports whether nothing of what content tells matters: no key is missing, and
// no source says something else than before.
func (f *foreseen) readable(edits []forecast.Edit) bool {
	whole := func(content *checksum.Content) bool { return content == nil || len(content.Entries) == 3 }
	for _, e := range edits {
		if !whole(e.Is) || e.Was != nil && e.Is != nil && !e.Was.Policy.Equal(e.Is.Policy) || e.Was == nil && e.Is != nil && e.Is.Policy != nil {
			return false
		}
	}
	for _, content := range f.contents {
		if !whole(content) {
			return false
		}
	}
	return true
}

func changedKeys(was, is *checksum.Content) (keys []string) {
	for _, key := range []string{"a", "b", "c"} {
		before, had := was.Entry(key)
		after, has := is.Entry(key)
		if had != has || before != after {
			keys = append(keys, key)
		}
	}
	return keys
}

// rolledAt is a workload, and when it rolls.
type rolledAt struct {
	at   time.Time
	user workload.Ref
}

func (r rolledAt) String() string { return r.user.Name + " at " + r.at.Format("02 15:04:05") }

// oneEdit foresees an edit, makes it, and compares.
func (f *foreseen) oneEdit(about string) {
	f.t.Helper()
	edits := f.someEdits()
	q := f.question(edits, f.controller.index.All())
	answer, brief, supposed := q.Answer(), f.foretold(edits), f.supposed(q, f.draw.IntN(2) == 0 || !f.readable(edits)).Answer()
	var want []rolledAt
	for _, roll := range answer.Rolls {
		want = append(want, rolledAt{roll.At, roll.Workload})
	}
	for _, stay := range answer.Stays {
		f.told[stay.Why]++
	}
	before := map[workload.Ref]int{}
	for user, app := range f.apps {
		before[user] = app.rolls
	}
	for _, e := range edits {
		f.contents[e.At], f.written[e.At] = e.Is, f.clock.Now().Truncate(time.Second)
	}
	for _, e := range edits {
		f.controller.Edited(e.At.Namespace, e.At.Source, e.Was)
	}
	f.pass(25*time.Hour + time.Duration(f.draw.IntN(3600))*time.Second)
	var got []rolledAt
	for _, user := range f.names {
		if app := f.apps[user]; app.rolls > before[user] {
			got = append(got, rolledAt{app.rolled, user})
		}
	}
	f.compare(about, edits, want, got)
	f.compareSupposed(about, q, &answer, &supposed)
	f.compareBrief(about, len(edits) > 1, &brief, got)
	f.counts["edits"]++
	f.counts["rolls"] += len(got)
	if len(got) > 7 {
		f.counts["of more than 7"]++
	}
}

func (f *foreseen) compare(about string, edits []forecast.Edit, want, got []rolledAt) {
	f.t.Helper()
	order := func(a, b rolledAt) int { return cmp.Or(a.at.Compare(b.at), a.user.Compare(b.user)) }
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if slices.EqualFunc(want, got, func(a, b rolledAt) bool { return a.user == b.user && a.at.Equal(b.at) }) {
		f.counts["foreseen to the second"]++
	}
	users := func(all []rolledAt) (users []workload.Ref) {
		for _, one := range all {
			users = append(users, one.user)
		}
		slices.SortFunc(users, workload.Ref.Compare)
		return users
	}
	if !slices.Equal(users(want), users(got)) {
		f.t.Errorf("%s of %v: foreseen\n  %v, and it rolled\n  %v", about, edits[0].At, want, got)
	}
}

// compareSupposed compares what was foreseen with and without the key, of workloads that
// were in step: of the others, who has no key knows nothing.
func (f *foreseen) compareSupposed(about string, q *forecast.Question, answer, supposed *forecast.Answer) {
	f.t.Helper()
	inStep := map[workload.Ref]bool{}
	for i := range q.Workloads {
		w := &q.Workloads[i]
		review := q.Ring.Review(w.Ref.Namespace, &w.Policy, checksum.Selections(w.References, w.Policy), w.Records, func(s checksum.Source) *checksum.Content {
			at := rollout.SourceRef{Namespace: w.Ref.Namespace, Source: s}
			if e := slices.IndexFunc(q.Edits, func(e forecast.Edit) bool { return e.At == at }); e >= 0 {
				return q.Edits[e].Was
			}
			return f.contents[at]
		})
		inStep[w.Ref] = len(review.Untrue) == 0
	}
	tells := func(a *forecast.Answer) (texts []string) {
		for _, r := range a.Rolls {
			if inStep[r.Workload] {
				texts = append(texts, r.Workload.String()+" rolls for "+fmt.Sprint(r.For))
			}
		}
		for _, s := range a.Stays {
			if inStep[s.Workload] {
				texts = append(texts, fmt.Sprint(s.Workload, " stays ", s.Source, s.Why, s.Finding, s.Would))
			}
		}
		slices.Sort(texts)
		return texts
	}
	if with, without := tells(answer), tells(supposed); !slices.Equal(with, without) {
		f.t.Errorf("%s of %v: with the key\n%s\nwithout\n%s", about, q.Edits, strings.Join(with, "\n"), strings.Join(without, "\n"))
	}
}

func (f *foreseen) compareBrief(about string, lots bool, brief *forecast.Brief, got []rolledAt) {
	f.t.Helper()
	all := append(slices.Clone(brief.Rolls), brief.Later...)
	slices.SortFunc(all, workload.Ref.Compare)
	var users []workload.Ref
	first := map[workload.Ref]bool{}
	for _, g := range got {
		users = append(users, g.user)
		if g.at.Equal(got[0].at) {
			first[g.user] = true
		}
	}
	slices.SortFunc(users, workload.Ref.Compare)
	if !slices.Equal(all, users) {
		f.t.Errorf("%s: told in brief %v, and it rolled %v", about, all, users)
	}
	if lots || len(brief.Rolls) == 0 || len(brief.Later) > 0 || len(got) == 0 {
		return
	}
	if !first[brief.Rolls[0]] {
		f.t.Errorf("%s: told in brief that %v goes first, and it was %v", about, brief.Rolls[0], first)
	}
	if f.counts["first"]++; brief.First == len(first) {
		f.counts["as many first as foreseen"]++
	}
}
