package warning

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

const (
	// speaker begins our admission warnings.
	speaker = "configstamp: "
	// mostRunes of a warning are kept by the API server.
	mostRunes = 256
	// fewNames are all named; of more, two are, and the others are counted.
	fewNames = 3
	// mostOfName is how much is said of a name that is too long.
	mostOfName = 60
	// mostTimes at which something that is held rolls are told apart.
	mostTimes = 3
)

// sentences say what comes of an edit, the worst first; none when nothing does.
func sentences(edit *impact.Edit, answer *impact.Answer) (all []string) {
	add := func(refs []workload.Ref, sentence string) {
		if len(refs) > 0 {
			all = append(all, fitting(refs, sentence))
		}
	}
	this := "this change"
	if edit.Is == nil {
		this = "this deletion"
	}
	needy, pinned, lost := whoNeeds(edit, answer)
	add(needy, "without "+lost+" no new pod of {who} can start")
	add(pinned, "{who} keep{s} the pinned content, new pods too while pins are on; without "+lost+" nothing rolls out")
	now, later, unseen := timed(answer)
	if edit.Is == nil && edit.Immutable {
		add(slices.Concat(needy, now, unseen), "if it is created again with other content, an immutable "+string(edit.At.Source.Kind)+
			" is not read by nodes that run pods of {who}: give the new one another name, or first scale them to zero")
	}
	add(now, this+" rolls out {who}"+first(answer.First, len(now)))
	add(interrupted(answer), "{who} will be unavailable meanwhile: the strategy replaces all pods at once")
	add(answer.Unguarded, "{who} {has} neither a readiness probe nor minReadySeconds: new pods that crash can replace all old ones")
	for _, at := range later {
		add(at.refs, "{who} roll{s} out "+at.when())
	}
	would := func(why ...reason.Reason) []workload.Ref {
		return staying(answer, func(s *impact.Stay) bool { return s.Would && slices.Contains(why, s.Why) })
	}
	add(would(reason.ObserveMode), "{who} would roll out, but the mode is observe")
	add(would(reason.Paused), "{who} roll{s} out when configstamp.dev/pause is removed")
	add(would(reason.UnreadableSetting), "{who} roll{s} out when a setting that cannot be read is fixed")
	add(would(reason.MissingSource, reason.MissingKey), "{who} roll{s} out when everything else that new pods need exists")
	add(would(reason.Halted), "{who} wait{s}, because an undo of another workload declined this content")
	add(staying(answer, func(s *impact.Stay) bool { return s.Why == reason.DeclinedKept }), "{who} keep{s} older content, because an undo declined this content")
	add(unseen, "no pod of {who} restarts now: pods that start later use the new content")
	add(staying(answer, func(s *impact.Stay) bool { return s.Why == reason.Recorded }),
		"no pod of {who} restarts: no checksum was on record, and the new content is recorded")
	return all
}

// staying are the workloads of some stays.
func staying(answer *impact.Answer, of func(*impact.Stay) bool) (refs []workload.Ref) {
	for i := range answer.Stays {
		if of(&answer.Stays[i]) {
			refs = append(refs, answer.Stays[i].Workload)
		}
	}
	return refs
}

// interrupted returns the workloads that roll now, and whose strategy may replace all pods at once.
func interrupted(answer *impact.Answer) (refs []workload.Ref) {
	for i := range answer.Rolls {
		if r := &answer.Rolls[i]; r.Recreates && r.Waits == "" && r.Held.Reason == reason.NoReason {
			refs = append(refs, r.Workload)
		}
	}
	return refs
}

// whoNeeds are the workloads that need what an edit takes away, those of them that pin it, and what
// that is.
func whoNeeds(edit *impact.Edit, answer *impact.Answer) (refs, pinned []workload.Ref, lost string) {
	lost = "this " + string(edit.At.Source.Kind)
	var keys []string
	refs = staying(answer, func(s *impact.Stay) bool {
		needs := !s.Would && !s.Before && (s.Why == reason.MissingSource || s.Why == reason.MissingKey)
		if needs && s.Why == reason.MissingKey && !slices.Contains(keys, s.Finding.Key) {
			keys = append(keys, s.Finding.Key)
		}
		if needs && s.Pinned {
			pinned = append(pinned, s.Workload)
		}
		return needs && !s.Pinned
	})
	if slices.Sort(keys); len(keys) > 0 {
		lost = "the key " + strconv.Quote(cut(keys[0]))
	}
	if more := len(keys) - 1; more > 0 {
		lost = fmt.Sprintf("%s and %d more", lost, more)
	}
	return refs, pinned, lost
}

// later are workloads that roll when something ends.
type later struct {
	checksum.Hold
	refs  []workload.Ref
	mixed bool // of several such times
}

// timed are those that roll now, those that a setting holds, the soonest first, and those of
// which no pod is replaced.
func timed(answer *impact.Answer) (now []workload.Ref, held []*later, unseen []workload.Ref) {
	for i := range answer.Rolls {
		r := &answer.Rolls[i]
		if r.Waits != "" {
			unseen = append(unseen, r.Workload)
			continue
		}
		if r.Held.Reason == reason.NoReason {
			now = append(now, r.Workload)
			continue
		}
		at := slices.IndexFunc(held, func(l *later) bool { return l.Reason == r.Held.Reason && l.Until.Equal(r.Held.Until) })
		if at < 0 {
			at, held = len(held), append(held, &later{Hold: r.Held})
		}
		held[at].refs = append(held[at].refs, r.Workload)
	}
	slices.SortStableFunc(held, func(a, b *later) int { return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Reason, b.Reason)) })
	if len(held) > mostTimes {
		rest := &later{mixed: true}
		for _, l := range held[mostTimes-1:] {
			rest.refs = append(rest.refs, l.refs...)
		}
		held = append(held[:mostTimes-1], rest)
	}
	return now, held, unseen
}

// when says when they roll.
func (l *later) when() string {
	switch {
	case l.mixed:
		return "later, when their settings allow it"
	case l.Reason == reason.Paused:
		return "when the pause ends, " + clock(l.Until)
	case l.Reason == reason.OutsideWindow:
		return "when the window opens, " + clock(l.Until)
	}
	return "when the min-interval has passed, " + clock(l.Until)
}

// clock writes a time in the zone in which it was said, if that has a name.
func clock(t time.Time) string {
	if zone := t.Location().String(); zone == "" || zone == "Local" {
		t = t.UTC()
	}
	form := "2006-01-02 15:04"
	if t.Second() != 0 {
		form += ":05"
	}
	return t.Format(form) + " " + t.Location().String()
}

// first says how many go first, if not all do.
func first(n, of int) string {
	words := []string{"", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
	switch {
	case n <= 0 || n >= of:
		return ""
	case n < len(words):
		return ", " + words[n] + " first"
	}
	return fmt.Sprintf(", %d first", n)
}

// fitting is a sentence with as many names as there is room for.
func fitting(refs []workload.Ref, sentence string) (text string) {
	named, plural, has := len(refs), "", "have"
	if named > fewNames {
		named = 2
	}
	if len(refs) == 1 {
		plural, has = "s", "has"
	}
	for ; named >= 0; named-- {
		text = speaker + strings.NewReplacer("{who}", list(refs, named), "{s}", plural, "{has}", has).Replace(sentence)
		if utf8.RuneCountInString(text) <= mostRunes {
			break
		}
	}
	return text
}

// list names the first of some workloads, and counts the others. named is 0 where even one
// name is too long: then it is cut.
func list(refs []workload.Ref, named int) string {
	names := make([]string, 0, named+1)
	for _, ref := range refs[:named] {
		names = append(names, ref.Text())
	}
	if named == 0 {
		names = append(names, cut(refs[0].Text()))
	}
	if more := len(refs) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func cut(name string) string {
	if len(name) <= mostOfName {
		return name
	}
	return name[:mostOfName] + "…"
}
