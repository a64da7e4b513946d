package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/faults/judge"
)

// Life is one random user of one namespace: what he does follows from a seed,
// when it meets what others do does not.
type Life struct {
	*Trial
	random *rand.Rand
	// steps are what was done, for people.
	steps   []string
	sources []string
	current map[string]map[string]string
	former  map[string][]map[string]string
	manages map[string]*plan
	count   int
	// pins tells that he pins, pinsEach that his workloads say so; full, that he has a quota.
	pins, pinsEach, full bool
	// often is how often, of five times, he does what only those do.
	often int
}

// plan is a workload as its manifest says.
type plan struct {
	kind, name string
	image      int
	uses       []Use
	// pins: it says that it does; scales: it makes Pods, as many as replicas.
	pins, scales bool
	replicas     int64
}

// NewLife makes a user whose doings follow from a seed.
func NewLife(trial *Trial, seed, number uint64) *Life {
	return &Life{
		Trial: trial, random: rand.New(rand.NewPCG(seed, number)),
		current: map[string]map[string]string{}, former: map[string][]map[string]string{}, manages: map[string]*plan{},
	}
}

// Begin makes sources and workloads.
func (l *Life) Begin() error {
	kinds := []string{"configmap", "secret"}
	if l.random.IntN(3) > 0 {
		if err := l.beginToPin(); err != nil {
			return err
		}
		kinds = []string{"configmap", "configmap", "configmap", "secret"}
	}
	for i := range 2 + l.random.IntN(3) {
		source := fmt.Sprintf("%s/s%d", kinds[l.random.IntN(len(kinds))], i)
		l.sources = append(l.sources, source)
		if l.random.IntN(5) == 0 {
			continue // it comes later, or never
		}
		if err := l.set(source, l.content()); err != nil {
			return err
		}
	}
	for i := range 1 + l.random.IntN(4) {
		p := &plan{kind: l.kind(), name: fmt.Sprintf("w%d", i)}
		p.uses = l.uses()
		if l.pins {
			p.pins, p.scales, p.replicas = l.pinsEach && l.random.IntN(4) > 0, true, int64(l.random.IntN(3))
		}
		l.manages[p.ref()] = p
		if err := l.Create(p.manifest()); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) ref() string { return strings.ToLower(p.kind) + "/" + p.name }

func (p *plan) manifest() *unstructured.Unstructured {
	object := Workload(p.kind, p.name, fmt.Sprint(p.image), p.uses...)
	p.pinned(object)
	return object
}

// kind picks that of a workload; who pins has more of those that make Pods.
func (l *Life) kind() string {
	if n := l.random.IntN(10); l.pins && n < 5 {
		return []string{"Deployment", "Deployment", "StatefulSet"}[n%3]
	}
	return []string{"Deployment", "Deployment", "StatefulSet", "DaemonSet", "CronJob"}[l.random.IntN(5)]
}

// uses picks references: no source twice, so that required is required.
func (l *Life) uses() []Use {
	var uses []Use
	for _, source := range l.sources {
		if l.random.IntN(3) > 0 {
			uses = append(uses, Use{
				Source: source, Optional: l.random.IntN(3) == 0,
				Way: []string{"envFrom", "envFrom", "env", "volume", "items", "subPath"}[l.random.IntN(6)],
			})
		}
	}
	return uses
}

// content is new each time; a key may be missing.
func (l *Life) content() map[string]string {
	l.count++
	data := map[string]string{"other": judge.Marker + "-fixed"}
	if l.random.IntN(8) > 0 {
		data["k"] = fmt.Sprintf("%s-%d", judge.Marker, l.count)
	}
	if l.random.IntN(3) == 0 {
		data["other"] = fmt.Sprintf("%s-other-%d", judge.Marker, l.count)
	}
	return data
}

func (l *Life) set(source string, data map[string]string) error {
	if old := l.current[source]; old != nil {
		l.former[source] = append(l.former[source], old)
	}
	l.current[source] = data
	err := l.Set(source, data)
	if errors.Is(err, errFlooded) {
		delete(l.current, source)
		return nil
	}
	return err
}

// Live does things, one after the other, until it has done enough.
func (l *Life) Live(ctx context.Context, steps int, pause time.Duration) error {
	for range steps {
		what, do := l.next()
		l.steps = append(l.steps, what)
		if err := do(); err != nil && !errors.Is(err, errFlooded) && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(l.random.Int64N(int64(pause)))):
		}
	}
	return nil
}

// Mend brings back most of what is missing, or lacks a key, and takes away what
// holds workloads, so that little is held at the end.
func (l *Life) Mend() error {
	if err := errors.Join(l.drain(), l.lift()); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(l.manages)) {
		if err := l.kill(l.manages[name].name); err != nil { // those that come now are judged in peace
			return err
		}
	}
	for _, source := range l.sources {
		if l.current[source]["k"] != "" || l.random.IntN(6) == 0 {
			continue
		}
		l.count++
		l.steps = append(l.steps, "mend "+source)
		if err := l.set(source, map[string]string{"k": fmt.Sprintf("%s-%d", judge.Marker, l.count), "other": judge.Marker}); err != nil {
			return err
		}
	}
	return nil
}

// Steps are what was done.
func (l *Life) Steps() string { return strings.Join(l.steps, ", ") }

func (l *Life) anySource() string { return l.sources[l.random.IntN(len(l.sources))] }

func (l *Life) anyPlan() *plan {
	var names []string
	for name := range l.manages {
		names = append(names, name)
	}
	slices.Sort(names)
	return l.manages[names[l.random.IntN(len(names))]]
}

// next picks what to do. Edits of sources are what it is mostly about.
func (l *Life) next() (string, func() error) {
	if l.pins && l.random.IntN(5) < l.often {
		return l.ofPins()
	}
	source, p := l.anySource(), l.anyPlan()
	switch n := l.random.IntN(100); {
	case n < 32:
		return "edit " + source, func() error { return l.set(source, l.content()) }
	case n < 40:
		first, second := l.content(), l.content()
		return "edit twice " + source, func() error {
			if err := l.set(source, first); err != nil {
				return err
			}
			return l.set(source, second)
		}
	case n < 50:
		former := l.former[source]
		if len(former) == 0 {
			return "nothing", func() error { return nil }
		}
		return "revert " + source, func() error { return l.set(source, former[len(former)-1]) }
	case n < 54:
		data := l.current[source]
		return "rewrite " + source, func() error {
			if data == nil {
				return nil
			}
			return l.Set(source, data)
		}
	case n < 58:
		return "delete " + source, func() error {
			delete(l.current, source)
			return l.Delete(source)
		}
	case n < 62:
		data := l.content()
		return "delete and make anew " + source, func() error {
			if err := l.Delete(source); err != nil {
				return err
			}
			return l.set(source, data)
		}
	}
	return l.change(p)
}

// change picks what to do with a workload.
func (l *Life) change(p *plan) (string, func() error) {
	name, n := p.ref(), l.random.IntN(100)
	switch {
	case n < 20:
		p.image++
		path := `{"spec":{"template":{"metadata":{"annotations":{"image":"%d"}}}}}`
		if p.kind == "CronJob" {
			path = `{"spec":{"jobTemplate":{"spec":{"template":{"metadata":{"annotations":{"image":"%d"}}}}}}}`
		}
		return "change " + name, func() error { return l.Patch(name, fmt.Sprintf(path, p.image)) }
	case n < 35:
		return "put " + name, func() error { return l.Put(p.manifest()) }
	case n < 48:
		p.image++
		return "put changed " + name, func() error { return l.Put(p.manifest()) }
	case n < 58:
		return "apply " + name, func() error { return l.Apply(p.manifest()) }
	case n < 66:
		p.uses = l.uses()
		return "put with other references " + name, func() error { return l.Put(p.manifest()) }
	case n < 70:
		setting := holds[l.random.IntN(len(holds))]
		return "annotate " + name + " " + setting[0] + "=" + setting[1], func() error {
			return l.Patch(name, fmt.Sprintf(`{"metadata":{"annotations":{"configstamp.dev/%s":%q}}}`, setting[0], setting[1]))
		}
	case n < 75:
		return "label " + name, func() error {
			return l.Patch(name, fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, len(l.steps)))
		}
	case n < 82:
		return "undo " + name, func() error { return l.undo(p) }
	case n < 88:
		return "re-admit " + name, func() error { return l.Readmit(name) }
	case n < 93:
		return "delete and make anew " + name, func() error {
			if err := l.Delete(name); err != nil {
				return err
			}
			return l.Create(p.manifest())
		}
	case n < 96:
		value := []string{"enabled", "disabled"}[l.random.IntN(2)]
		return "label " + name + " " + value, func() error {
			return l.Patch(name, fmt.Sprintf(`{"metadata":{"labels":{"configstamp.dev/inject":%q}}}`, value))
		}
	default:
		return "opt out and in", func() error {
			if err := l.Label("disabled"); err != nil {
				return err
			}
			return l.Label("enabled")
		}
	}
}

// holds are settings that hold a workload, or slow it down.
var holds = [...][2]string{
	{"pause", "true"}, {"pause", "false"}, {"mode", "observe"}, {"window", "never"}, {"min-interval", "2s"}, {"window", "Mon-Sun 00:00-24:00 UTC"},
}

// lift takes them away.
func (l *Life) lift() error {
	for _, name := range slices.Sorted(maps.Keys(l.manages)) {
		if err := l.Patch(name, `{"metadata":{"annotations":{"configstamp.dev/pause":null,"configstamp.dev/mode":null,"configstamp.dev/window":null,"configstamp.dev/min-interval":null}}}`); err != nil {
			return err
		}
	}
	return nil
}

// undo puts back the template of some time ago.
func (l *Life) undo(p *plan) error {
	events, _, err := l.Court.Witness.Events(l.Namespace)
	if err != nil {
		return err
	}
	path := []string{"spec", "template"}
	if p.kind == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	for _, event := range events {
		if judge.Name(event.Object) == p.ref() {
			if template, ok, _ := unstructured.NestedMap(event.Object.Object, path...); ok {
				return l.Undo(p.ref(), template)
			}
		}
	}
	return nil
}

// together runs something for each item, some at a time, and returns the first error.
func together[T any](items []T, atOnce int, do func(T) error) error {
	slots := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	var mu sync.Mutex
	var first error
	for _, item := range items {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := do(item); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = err
				}
			}
		})
	}
	group.Wait()
	return first
}
