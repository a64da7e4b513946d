package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/configstamp/configstamp/e2e/harness"
)

// optOutGrace is how long an API server may take to learn of a namespace's label.
const optOutGrace = 3 * time.Second

// Judge lists every way in which a finished history violates I1 to I5, and P1 to P5.
func (h *History) Judge() []Violation {
	c := h.court()
	c.walk()
	return append(c.found, h.Untrue()...)
}

// walk judges all events, in order.
func (c *court) walk() {
	for _, event := range c.Events {
		switch kind := event.Object.GetKind(); {
		case kind == "Namespace":
			c.optIn(event)
		case isWorkload(kind):
			c.workload(event)
		case kind == "ReplicaSet":
			c.replicaSet(event)
		case kind == "Pod":
			c.pod(event)
		case kind == "ConfigMap":
			c.collected(event)
		}
		c.there(event)
	}
	c.revisions()
	c.refused()
}

// Untrue lists what does not carry the truth at the end of a history: the part
// of I1 that has to come true in time.
func (h *History) Untrue() []Violation {
	c := h.court()
	last := map[string]Event{}
	for _, event := range h.Events {
		if event.Object.GetKind() == "Namespace" {
			c.optIn(event)
		}
		if isWorkload(event.Object.GetKind()) {
			last[Name(event.Object)] = event
		}
	}
	for _, name := range sortedKeys(last) {
		if event := last[name]; event.Type != watch.Deleted && event.Object.GetDeletionTimestamp() == nil && c.serves(event.Object) {
			c.untrue(event)
		}
	}
	return c.found
}

// court walks through a history.
type court struct {
	*History
	sources map[string]*contents
	lives   map[string]*life // of workloads, by uid
	made    map[string]map[string]bool
	living  map[string]*unstructured.Unstructured // what may name snapshots
	counts  Counts
	// unpinned are Pods that are not pinned though they could be, and nobody said why.
	unpinned []Violation
	optedIn  bool
	since    time.Time // when the label was last seen to change
	changes  int       // how often that was seen
	found    []Violation
}

// life is what has become of one workload so far.
type life struct {
	object     *unstructured.Unstructured
	name       string
	selections map[string]selection
	records    map[string]string
	// at is the version of the content that each record stands for; it stays when
	// a record is gone, as long as the reference is there.
	at map[string]int64
	// back is what an undo has brought back, by source.
	back      map[string]back
	templates int
	version   int64
}

func (h *History) court() *court {
	return &court{History: h, sources: h.contentsOf(), lives: map[string]*life{}, made: map[string]map[string]bool{}, living: map[string]*unstructured.Unstructured{}}
}

func (c *court) violated(invariant string, event Event, format string, args ...any) {
	c.found = append(c.found, Violation{invariant, Name(event.Object), event.Version, fmt.Sprintf(format, args...)})
}

func (c *court) optIn(event Event) {
	in := event.Object.GetLabels()[harness.InjectLabel] == "enabled" && event.Type != watch.Deleted
	if in != c.optedIn {
		c.optedIn, c.since = in, event.Seen
		c.changes++
	}
}

func (c *court) serves(object *unstructured.Unstructured) bool {
	switch object.GetLabels()[harness.InjectLabel] {
	case "enabled":
		return true
	case "disabled":
		return false
	}
	return c.optedIn
}

func (c *court) source(name string) *contents {
	if known, ok := c.sources[name]; ok {
		return known
	}
	return c.never(name)
}

// workload judges one event of a workload.
func (c *court) workload(event Event) {
	uid := string(event.Object.GetUID())
	if event.Type == watch.Deleted {
		return // the life stays, for its revisions
	}
	write, byUser := c.write(event)
	now := &life{object: event.Object, name: Name(event.Object), selections: selectionsOf(event.Object), at: map[string]int64{}, version: event.Version}
	now.records = recordsOf(event.Object, now.selections)
	was := c.lives[uid]
	c.lives[uid] = now
	if was == nil {
		was = &life{records: map[string]string{}, selections: map[string]selection{}, at: map[string]int64{}}
		if !byUser && !event.Gap {
			c.violated("I4", event, "a workload that no user made")
		}
	}
	created := was.object == nil
	if byUser && !event.Gap {
		if unwanted := write.unwanted(was.object, event.Object); len(unwanted) > 0 {
			c.violated("I4", event, "%s was stored with other changes: %s", write.What, strings.Join(unwanted, "; "))
		}
	}
	if !byUser && !created && !event.Gap {
		if others := differences("", bare(was.object), bare(event.Object)); len(others) > 0 {
			c.violated("I4", event, "something that is not ours was changed, by no user: %s", strings.Join(others, "; "))
		}
	}
	c.touched(was, event)
	edited := created || !equal(template(was.object), template(event.Object))
	stamped := !created && !equal(stampsAndPins(was.object), stampsAndPins(event.Object))
	now.templates = was.templates
	if edited || stamped {
		now.templates++
	}
	// What is opted out is not looked at, so a write of its user is all his own.
	// The API server may not have called anybody yet when it was opted in again a moment ago.
	again := c.changes > 1 && c.sinceGrace(event)
	unserved := byUser && (write.Unserved || again || !c.serves(event.Object)) || event.Gap
	c.undone(was, now, event, unserved)
	cause := c.records(was, now, event, unserved, edited, stamped)
	if !stamped || edited || unserved || byUser && write.Undo {
		return
	}
	if missing := c.missing(now, span{was.version, event.Version}); missing != "" {
		c.violated("I2", event, "it rolls while %s is missing", missing)
	}
	switch {
	case byUser && !write.Asked:
		c.violated("I2", event, "%s changes no template, and rolls", write.What)
	case !cause:
		c.violated("I2", event, "it rolls, and no content has changed since its record")
	}
}

// missing is a source that a workload needs and that was not there, or lacked a
// key, all through a span.
func (c *court) missing(l *life, in span) string {
	for _, source := range sortedKeys(l.selections) {
		s, holder := l.selections[source], c.source(source)
		there := !s.missing(holder.at(in.since))
		for _, one := range holder.states {
			there = there || one.version > in.since && one.version <= in.until && !s.missing(one)
		}
		if !there {
			return source
		}
	}
	return ""
}

// touched judges that nothing outside what was opted in gets anything of ours.
func (c *court) touched(was *life, event Event) {
	if c.serves(event.Object) || c.sinceGrace(event) {
		return
	}
	before := map[string]string{}
	if was.object != nil {
		if c.serves(was.object) {
			return // opted out by this very write
		}
		before = ours(was.object)
	}
	write, _ := c.write(event)
	sent := map[string]string{}
	if write.Sent != nil {
		sent = ours(write.Sent)
	}
	for key, value := range write.Carries {
		sent["template "+key] = value
	}
	for key, value := range ours(event.Object) {
		if before[key] != value && sent[key] != value {
			c.violated("I5", event, "%s is written to what is not opted in", key)
		}
	}
}

func (c *court) sinceGrace(event Event) bool {
	return !c.since.IsZero() && event.Seen.Sub(c.since) < optOutGrace
}

// records follows each record to the content that it stands for, and reports
// whether any went on to another content.
func (c *court) records(was, now *life, event Event, unserved, edited, stamped bool) (cause bool) {
	write, byUser := c.write(event)
	undo := byUser && write.Undo
	for _, source := range sortedKeys(now.selections) {
		s := now.selections[source]
		old, had := was.records[source]
		value, has := now.records[source]
		floor, floored := was.at[source]
		if floored {
			now.at[source] = floor
		}
		switch {
		case !has:
			if had && !edited && !unserved && (!undo || !s.missing(c.source(source).at(event.Version))) {
				c.violated("I1", event, "the record of %s is gone, and the template is the same", source)
			}
			continue
		case had && old == value:
			continue
		case value == absent && (s.required || len(s.needed) > 0):
			c.violated("I2", event, "%s is required, and recorded as absent", source)
			continue
		}
		sameKind := had && written(old) == written(value) || had && (old == absent || value == absent)
		// What the webhook proves it reads after the old object was stored; only what
		// nothing covers yet may come from a memory that lags.
		var since int64
		if undo && pinsOf(event.Object)[source] != "" { // it goes back, and what comes now is newer than that
			floor, floored = 0, false
			sameKind = false
		}
		if sameKind || !byUser {
			since = was.version
		}
		// So has a template that a user changes: where nothing can be proven, what is on record
		// stays, and memory tells the rest. A stamp of another selection is of the rest.
		version, verdict := c.follow(s, value, span{since, event.Version}, floor, floored && (sameKind || !byUser), sameKind)
		if verdict != "" && !unserved {
			c.violated(verdict, event, "%s", describe(verdict, source, old, value))
		}
		if verdict != "" && unserved { // the user brought it: what comes now is newer than that
			version, verdict = c.follow(s, value, span{0, event.Version}, 0, false, false)
		}
		if verdict == "" {
			now.at[source] = version
		}
		if !had || verdict != "" {
			continue
		}
		wasTrue, untrue := c.held(s, old, span{was.version, event.Version})
		cause = cause || untrue
		if (sameKind || !wasTrue) && !edited && !stamped && !unserved {
			c.violated("I1", event, "%s has changed from %s to %s on record, and nothing rolls", source, short(old), short(value))
		}
	}
	return cause
}

// held tells whether a value was the truth at some moment of a span, and whether
// it was not at some. One that cannot be worked out may have been both.
func (c *court) held(s selection, value string, in span) (was, wasNot bool) {
	list, ok := c.source(s.source).under(c.Keys, s, value)
	if !ok {
		return true, true
	}
	for i, one := range list {
		over := i+1 < len(list) && list[i+1].version <= in.since
		if over || one.version > in.until {
			continue
		}
		was, wasNot = was || one.digest == value, wasNot || one.digest != value
	}
	return was, wasNot
}

func describe(verdict, source, old, value string) string {
	if verdict == "I3" {
		return fmt.Sprintf("%s went from %s back to %s, which is older content", source, short(old), short(value))
	}
	return fmt.Sprintf("%s is recorded as %s, which it has never held so far", source, short(value))
}

// written is how a value was made: its version, key and selection.
func written(value string) string {
	if i := strings.LastIndex(value, ":"); i >= 0 {
		return value[:i]
	}
	return value
}

// span is from one version to another.
type span struct{ since, until int64 }

// follow finds the content that a new value stands for: the oldest that was there
// within a span, is no older than floor, and, when it takes the place of another
// value of its kind, newer. So a content that was put back counts as new, and one
// that looks like an older one is only that if it cannot be another.
func (c *court) follow(s selection, value string, in span, floor int64, floored, newer bool) (version int64, verdict string) {
	list, ok := c.source(s.source).under(c.Keys, s, value)
	if !ok {
		return 0, "I1"
	}
	older := false
	for i, one := range list {
		if one.version > in.until {
			break
		}
		if one.digest != value {
			continue
		}
		over := func(version int64) bool { return i+1 < len(list) && list[i+1].version <= version }
		if over(in.since) || floored && (over(floor) || newer && one.version <= floor) {
			older = true
			continue
		}
		return one.version, ""
	}
	if older {
		return 0, "I3"
	}
	return 0, "I1"
}

// untrue judges what a workload carries at the end.
func (c *court) untrue(event Event) {
	selections := selectionsOf(event.Object)
	records := recordsOf(event.Object, selections)
	held := false
	for source, s := range selections {
		held = held || s.missing(c.source(source).last())
	}
	for _, source := range sortedKeys(selections) {
		s, holder := selections[source], c.source(source)
		if s.missing(holder.last()) {
			continue // whatever is on record stays
		}
		value, ok := records[source]
		if !ok {
			c.violated("I1", event, "nothing is on record for %s", source)
			continue
		}
		if held {
			continue // nothing rolls while anything required is missing
		}
		list, ok := holder.under(c.Keys, s, value)
		if declined := declinedBy(event.Object)[source]; ok && slices.Contains(declined, list[len(list)-1].digest) {
			continue // an undo has sent it back
		}
		if !ok || list[len(list)-1].digest != value {
			c.violated("I1", event, "%s is recorded as %s, and that is not what it holds", source, short(value))
		}
	}
}
