package answer

import (
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// State is where one workload stands, in one word.
type State string

// The states. Done is said of what the webhook calls in step, and nothing else.
const (
	Done      State = "done"
	Rolling   State = "rolling"
	Failed    State = "failed"
	Waiting   State = "waiting"
	Held      State = "held"
	Halted    State = "halted"
	Observed  State = "observed"
	Suspended State = "suspended"
	Unknown   State = "unknown"
	Unserved  State = "not served"
)

// Progress is where one workload stands now.
type Progress struct {
	Namespace string `json:"namespace"`
	// Workload is kind/name.
	Workload string `json:"workload"`
	State    State  `json:"state"`
	// Outcome is the webhook's own word, "unknown" in JSON where it has said nothing, or
	// was not asked. Unasked says why there is none, where the state
	// is known without it.
	Outcome seen.Code `json:"outcome"`
	Unasked string    `json:"unasked,omitempty"`
	// Why says in words what it waits for, or why nothing is known.
	Why string `json:"why,omitempty"`
	// Since is when that began, as far as it is known (UTC).
	Since *time.Time `json:"since,omitempty"`
	// Because are the sources that changed; empty where it is not known which.
	Because []checksum.Source `json:"because,omitempty"`
	// Next is the command, or what to do in words, that goes on; "" where nothing is to
	// be done.
	Next string `json:"next,omitempty"`
	// Declined tells that an undo keeps it on older content of these sources: it is not out of
	// date.
	Declined bool `json:"declined,omitempty"`
}

// ProgressOf says where a workload stands.
func ProgressOf(f *seen.Fleet, w *seen.Workload, now time.Time) Progress {
	return progressOf(f, w, nil, now)
}

// progressOf returns where a workload stands, as far as its pods show it too; nil if they were not read.
func progressOf(f *seen.Fleet, w *seen.Workload, pods []seen.Pod, now time.Time) Progress {
	p := Progress{Namespace: w.Namespace, Workload: w.Text()}
	standing, why := f.Serves(w)
	if standing == seen.NotServed {
		p.State = Unserved
		p.Why, p.Next = NotServedWords(f.Settings, f.Namespaces[w.Namespace], w, why)
		return p
	}
	outcome := f.Outcome(w)
	p.Outcome = outcome.Code
	in := " -n " + w.Namespace
	switch outcome.Code {
	case seen.InStep:
		p.rolled(f, w, pods, now)
	case seen.WouldRoll, seen.Held:
		if p.Because = declinedSources(w, &outcome); len(p.Because) > 0 {
			p.State, p.Since, p.Declined = Held, lastEdit(f, w, p.Because), true
			p.Why = "it keeps older content of " + joined(p.Because, " and ") + ": an undo declined the present content"
			p.Next = "kubectl configstamp accept " + w.Text() + in
			break
		}
		p.Because = staleSources(f, w)
		if p.waits(f, w, now); p.Since == nil {
			p.Since = lastEdit(f, w, p.Because)
		}
	case seen.Observed:
		p.State, p.Because, p.Why = Observed, staleSources(f, w), "configstamp.dev/mode is observe"
		p.Next = "kubectl configstamp roll " + w.Text() + in
	case seen.Missing, seen.Unreadable, seen.Oversize:
		p.State, p.Why, p.Next = Held, outcome.Sentence, "kubectl configstamp why "+w.Text()+in
		if faults := f.Policy(w).Faults; outcome.Code == seen.Unreadable && len(faults) > 0 {
			if p.Next = "kubectl edit " + w.Text() + in; faults[0].Origin == checksum.OfNamespace {
				p.Next = "kubectl edit namespace/" + w.Namespace
			}
		}
		p.lacks(f, w)
	case seen.WouldRecord, seen.KeyLost:
		p.State, p.Why = Waiting, outcome.Sentence
	case seen.OptedOut:
		p.State, p.Why = Unserved, outcome.Sentence
	case seen.Unknown, seen.Deferred, seen.Declined:
		p.unknown(f, w, pods, outcome.Sentence, now)
	}
	return p
}

// lacks says what is missing or cannot be read, as the controller has told it. Events of the
// same reason that are no warnings tell of something else.
func (p *Progress) lacks(f *seen.Fleet, w *seen.Workload) {
	event := lastEvent(f, w, reason.SourceGone, reason.MissingSource, reason.UnreadableSetting, reason.TooLarge)
	if event == nil || !event.Warning {
		return
	}
	p.Because, p.Why, p.Since = SourcesIn(event.About), event.Message, &event.First
	if event.Reason == reason.SourceGone.Event() {
		p.Why = firstSentence(event.Message)
		p.Next = "put " + joined(p.Because, " and ") + " back: the old content restarts nothing, other content rolls out"
	}
}

// unknown is the state of a workload of which the webhook has said nothing: what its own
// status tells, and what the controller has said of it within the hour, is told all the
// same.
func (p *Progress) unknown(f *seen.Fleet, w *seen.Workload, pods []seen.Pod, why string, now time.Time) {
	if p.rolled(f, w, pods, now); p.State == Rolling || p.State == Failed {
		p.Unasked = why
		return
	}
	*p = Progress{Namespace: p.Namespace, Workload: p.Workload, Outcome: p.Outcome, State: Unknown, Why: why}
	made := recordedAt(f, w)
	event := lastEvent(f, w, reason.Halted, reason.Paced, reason.Blocked, reason.Retry, reason.Turn, reason.ObserveMode, reason.MissingSource, reason.SourceGone, reason.UnreadableSetting)
	if event != nil && event.Last.After(made) {
		p.Because, p.Since = SourcesIn(event.About), &event.First
		p.Why = "configstamp said earlier: " + wordsOf(event) + ". Now: " + why
	}
}

// wordsOf returns why nothing rolls, as an event says it, in few words.
func wordsOf(event *seen.Event) string {
	if event.Reason == reason.Halted.Event() {
		return reason.Halted.Sentence(reason.Values{})
	}
	return firstSentence(event.Message)
}

// rolled is the state of a workload that carries what is true.
func (p *Progress) rolled(f *seen.Fleet, w *seen.Workload, pods []seen.Pod, now time.Time) {
	p.State = Done
	revisions := RevisionsOf(f, w)
	if newest := Newest(revisions); newest != nil && len(newest.Sources) > 0 {
		p.Because, p.Since = newest.Sources, &newest.At
	} else if event := lastEvent(f, w, reason.ConfigChanged); newest == nil && event != nil { // its kind keeps no revisions
		p.Because, p.Since = SourcesIn(event.About), &event.Last
	}
	switch w.Status.Phase {
	case workload.Rolling:
		p.State, p.Why = Rolling, missingPods(&w.Status)
		p.Next = "kubectl configstamp wait " + w.Text() + " -n " + w.Namespace
	case workload.Failed:
		p.State, p.Why = Failed, w.Status.Why
	case workload.Suspended:
		p.State, p.Why = Suspended, "its own strategy has paused it"
	case workload.RolledOut, workload.Unreported:
	}
	if p.State == Rolling || p.State == Failed {
		p.fails(f, w, pods, now)
	}
}

// fails sets why a rolling workload does not become healthy. An event of the controller says that it has
// failed. The advice depends on the cause, which status and pods show.
func (p *Progress) fails(f *seen.Fleet, w *seen.Workload, pods []seen.Pod, now time.Time) {
	event := failure(f, w)
	if event != nil {
		p.State, p.Why, p.Next = Failed, firstSentence(event.Message), "follow the advice of its event "+event.Reason
	}
	facts := rollout.Facts{Status: w.Status, Records: w.Records}
	if pods != nil {
		facts.Pods = &rollout.Pods{}
		for i := range pods {
			facts.Pods.All = append(facts.Pods.All, pods[i].Pod)
		}
	}
	shown := facts.Shown(now)
	advice, _ := shown.Advice(w.Ref)
	switch shown.Cause {
	case rollout.Crashes, rollout.Refused, rollout.Unscheduled, rollout.Gated, rollout.Rejected:
		if p.Next = lowered(advice); event == nil {
			p.Why = shown.String() + "; " + p.Why
		}
	default: // it may be under way
		if p.State == Failed && event == nil {
			p.Next = lowered(advice)
		}
	}
}

// lowered returns advice as it continues a line.
func lowered(advice string) string {
	if advice == "" {
		advice = rollout.Mend
	}
	return strings.ToLower(advice[:1]) + advice[1:]
}

// failure is the event that tells that the newest revision of a workload has failed, nil
// if there is none.
func failure(f *seen.Fleet, w *seen.Workload) *seen.Event {
	event := lastEvent(f, w, reason.RolloutFailed)
	if event == nil || event.Last.Before(recordedAt(f, w)) {
		return nil
	}
	return event
}

// waits is the state of a workload that is out of date: by its policy, else by what the
// controller has said of it within the hour for which events are kept.
func (p *Progress) waits(f *seen.Fleet, w *seen.Workload, now time.Time) {
	of := w.Text() + " -n " + w.Namespace
	policy := f.Policy(w)
	if hold, held := policy.HoldAt(now, w.Status.Current); held {
		origin, _ := policy.OriginOf(hold.Reason.String())
		p.State, p.Why = Held, "configstamp.dev/"+hold.Reason.String()+origins(origin)+" holds it"
		if !hold.Until.IsZero() {
			p.Why += " until " + hold.Until.UTC().Format(time.RFC3339)
		}
		p.Next = "kubectl configstamp roll " + of
		if hold.Reason == reason.Paused {
			if p.Next = "kubectl configstamp unpause " + of; origin == checksum.OfNamespace {
				p.Next = "kubectl configstamp unpause namespace/" + w.Namespace
			}
		}
		return
	}
	p.State, p.Why = Waiting, "it waits for its turn, or until its source has settled"
	p.Next = "kubectl configstamp status " + of + " --watch"
	reasons := []reason.Reason{reason.Halted, reason.Paced, reason.Blocked, reason.Retry, reason.Turn, reason.ConfigChanged}
	event := lastEvent(f, w, reasons...)
	if event == nil || event.Reason == reason.ConfigChanged.Event() || superseded(f, w, event) { // that was another change
		return
	}
	p.Why, p.Since = wordsOf(event), &event.First
	switch event.Reason {
	case reason.Halted.Event():
		p.State = Halted
		if p.Next = "fix the source, or put it back"; len(p.Because) > 0 {
			p.Next += ", or go on anyway: kubectl configstamp resume " + p.Because[0].String() + " -n " + w.Namespace
		}
	case reason.Paced.Event(), reason.Blocked.Event(), reason.Retry.Event():
		p.State, p.Next = Held, "kubectl configstamp why "+of
	}
}

// declinedSources are those whose present content an undo has declined, if nothing else is out
// of date: the webhook says so beside its answer.
func declinedSources(w *seen.Workload, outcome *seen.Outcome) (declined []checksum.Source) {
	all, err := checksum.ParseDeclined(w.Records.Declined)
	if err != nil || outcome.Code != seen.Held {
		return nil
	}
	for source := range all {
		kept := func(m reason.Message) bool {
			return m.Code == reason.DeclinedKept.String() && m.Source == source.String()
		}
		if slices.ContainsFunc(outcome.Beside, kept) {
			declined = append(declined, source)
		}
	}
	slices.SortFunc(declined, checksum.Source.Compare)
	return declined
}

// staleSources are the sources for which a workload is out of date: those that the newest
// event about it names, else those that were edited after its newest revision was made.
func staleSources(f *seen.Fleet, w *seen.Workload) []checksum.Source {
	selected := f.Selected(w)
	reasons := []reason.Reason{reason.Halted, reason.Paced, reason.Turn, reason.ObserveMode, reason.MissingSource, reason.SourceGone, reason.Retry}
	made := recordedAt(f, w)
	if event := lastEvent(f, w, reasons...); event != nil && event.Last.After(made) {
		if named := SourcesIn(event.About); len(named) > 0 {
			return named
		}
	}
	var edited []checksum.Source
	for _, source := range selected {
		if at := f.Source(w.Namespace, source).Edited().At; at.After(made) {
			edited = append(edited, source)
		}
	}
	if len(edited) == 0 && len(selected) == 1 {
		return selected
	}
	return edited
}

// lastEdit is when one of some sources was written last, nil where nobody knows.
func lastEdit(f *seen.Fleet, w *seen.Workload, sources []checksum.Source) *time.Time {
	var last time.Time
	for _, source := range sources {
		last = newestOf(last, f.Source(w.Namespace, source).Edited().At)
	}
	if last.IsZero() {
		return nil
	}
	return &last
}

// recordedAt is when the newest revision of a workload was made, as far as it is known.
func recordedAt(f *seen.Fleet, w *seen.Workload) time.Time {
	if revisions := f.Revisions[w.Object.UID]; len(revisions) > 0 {
		return newestOf(revisions[0].Created, w.Created)
	}
	return newestOf(w.Written, w.Created)
}

// SourcesIn reads the sources that an event is about (its fieldPath): "configmap/a,
// secret/b and configmap/c by Deployment web".
func SourcesIn(about string) []checksum.Source {
	about, _, _ = strings.Cut(about, " by ")
	var sources []checksum.Source
	for _, word := range strings.FieldsFunc(about, func(letter rune) bool { return letter == ' ' || letter == ',' }) {
		if source, err := checksum.ParseSource(word); err == nil {
			sources = append(sources, source)
		}
	}
	slices.SortFunc(sources, checksum.Source.Compare)
	return sources
}

// lastEvent is the newest event of a workload for one of some reasons, nil if there is
// none.
func lastEvent(f *seen.Fleet, w *seen.Workload, reasons ...reason.Reason) *seen.Event {
	for _, event := range f.EventsOf(w.Kind.Name, w.Namespace, w.Name) {
		if slices.ContainsFunc(reasons, func(why reason.Reason) bool { return why.Event() == event.Reason }) {
			return &event
		}
	}
	return nil
}

// firstSentence shortens a text for people. No answer depends on what it says.
func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	return first
}
