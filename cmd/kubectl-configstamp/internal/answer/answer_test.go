package answer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

func now() time.Time { return time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC) }

var web = checksum.Source{Kind: checksum.ConfigMap, Name: "web"}

const webStamp = "configmap.configstamp.dev/web"

// value is a recorded value of a content, under a key, for a selection.
func value(key, selection, content string) string {
	return "v1:" + strings.Repeat(key, 8) + ":" + selection + ":" + strings.Repeat(content, 32)
}

// fleet is one Deployment that uses configmap/web, in an opted-in namespace.
func fleet(t *testing.T, annotations string) (*seen.Fleet, *seen.Workload) {
	t.Helper()
	kind := workload.Builtin()[0]
	object, err := kind.Decode([]byte(`{"metadata":{"name":"app","namespace":"shop","uid":"u","annotations":{` + annotations + `}},
		"spec":{"template":{"metadata":{"annotations":{"` + webStamp + `":"` + value("a", "all", "1") + `"}},"spec":{"containers":[{"name":"c","envFrom":[{"configMapRef":{"name":"web"}}]}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	w := &seen.Workload{Ref: workload.Ref{Kind: kind, Namespace: "shop", Name: "app"}, Object: object, Created: now().Add(-time.Hour * 24)}
	if w.References, err = object.References(); err != nil {
		t.Fatal(err)
	}
	w.Status.Phase = workload.RolledOut
	return &seen.Fleet{
		Settings:   &seen.Settings{Installation: "configstamp", Policy: checksum.DefaultPolicy(), Kinds: workload.Builtin()},
		Namespaces: map[string]seen.Namespace{"shop": {Namespace: checksum.Namespace{OptedIn: true}, Known: true}},
		Workloads:  []*seen.Workload{w}, Outcomes: map[workload.Ref]seen.Outcome{}, Revisions: map[types.UID][]seen.Revision{},
		Sources: map[rollout.SourceRef]*seen.Source{{Namespace: "shop", Source: web}: {Namespace: "shop", Source: web, Looked: true, Exists: true,
			Writers: []seen.Write{{Manager: "kubectl-edit", At: now().Add(-10 * time.Minute), Content: true}}}},
	}, w
}

// Nothing but the webhook's own word makes a workload done.
func TestProgress_DoneByTheWebhookAlone(t *testing.T) {
	f, w := fleet(t, "")
	states := map[answer.State][]seen.Code{}
	for code := range seen.Code(len(reason.Outcomes()) + 1) { // Unknown, and all that the webhook can say
		f.Outcomes[w.Ref] = seen.Outcome{Code: code, Sentence: "words"}
		p := answer.ProgressOf(f, w, now())
		states[p.State] = append(states[p.State], code)
	}
	f.Outcomes = nil
	if p := answer.ProgressOf(f, w, now()); p.State != answer.Unknown {
		t.Errorf("without a question it is %s", p.State)
	}
	for state, want := range map[answer.State][]seen.Code{
		answer.Done: {seen.InStep}, answer.Waiting: {seen.WouldRoll, seen.WouldRecord, seen.Held, seen.KeyLost}, answer.Observed: {seen.Observed},
		answer.Held: {seen.Missing, seen.Unreadable, seen.Oversize}, answer.Unserved: {seen.OptedOut},
		answer.Unknown: {seen.Unknown, seen.Deferred, seen.Declined},
	} {
		if !slices.Equal(states[state], want) {
			t.Errorf("%s by %v, want %v", state, states[state], want)
		}
	}
}

// What holds a workload that is out of date, and the command that lets it go.
func TestProgress_WhatHolds(t *testing.T) {
	for name, one := range map[string]struct {
		annotations, namespace string
		event                  reason.Reason
		state                  answer.State
		next                   string
	}{
		"nothing":              {state: answer.Waiting, next: "kubectl configstamp status deployment/app -n shop --watch"},
		"pause":                {annotations: `"configstamp.dev/pause":"true"`, state: answer.Held, next: "kubectl configstamp unpause deployment/app -n shop"},
		"pause of a namespace": {namespace: "true", state: answer.Held, next: "kubectl configstamp unpause namespace/shop"},
		"pause that is over":   {annotations: `"configstamp.dev/pause":"2026-11-22T02:59:00Z"`, state: answer.Waiting},
		"window":               {annotations: `"configstamp.dev/window":"Mon 04:00-05:00 UTC"`, state: answer.Held, next: "kubectl configstamp roll deployment/app -n shop"},
		"halt":                 {event: reason.Halted, state: answer.Halted, next: "kubectl configstamp resume configmap/web -n shop"},
		"turn":                 {event: reason.Turn, state: answer.Waiting},
		"blocked":              {event: reason.Blocked, state: answer.Held, next: "kubectl configstamp why deployment/app -n shop"},
	} {
		t.Run(name, func(t *testing.T) {
			f, w := fleet(t, one.annotations)
			f.Outcomes[w.Ref] = seen.Outcome{Code: seen.WouldRoll}
			if one.namespace != "" {
				f.Namespaces["shop"] = seen.Namespace{Known: true, Namespace: checksum.Namespace{OptedIn: true, Settings: map[string]string{"configstamp.dev/pause": one.namespace}}}
			}
			if one.event != reason.NoReason {
				f.Events = []seen.Event{{Kind: "Deployment", Namespace: "shop", Name: "app", About: "configmap/web by Deployment b", Reason: one.event.Event(), Last: now().Add(-time.Minute)}}
			}
			p := answer.ProgressOf(f, w, now())
			if p.State != one.state || !strings.Contains(p.Next, one.next) || !slices.Equal(p.Because, []checksum.Source{web}) {
				t.Errorf("it is %s because of %v, next %q", p.State, p.Because, p.Next)
			}
		})
	}
}

// What the controller has told of a source that is gone stands before the webhook's few words.
// A pause is told by the same reason as something that is missing, and is no warning.
func TestProgress_WhatIsGone(t *testing.T) {
	f, w := fleet(t, "")
	f.Outcomes[w.Ref] = seen.Outcome{Code: seen.Missing, Sentence: "something is missing"}
	f.Events = []seen.Event{{Kind: "Deployment", Namespace: "shop", Name: "app", About: "configmap/web", Reason: reason.Paused.Event(), Message: "a pause", Last: now()}}
	if p := answer.ProgressOf(f, w, now()); p.State != answer.Held || p.Why != "something is missing" || len(p.Because) > 0 {
		t.Errorf("it is %+v", p)
	}
	f.Events = []seen.Event{{Kind: "Deployment", Namespace: "shop", Name: "app", About: "configmap/web", Reason: reason.SourceGone.Event(), Warning: true, First: now().Add(-time.Minute), Last: now(),
		Message: "configmap/web does not exist any more: running pods keep running. If it comes back with the same content, nothing restarts"}}
	p := answer.ProgressOf(f, w, now())
	if p.State != answer.Held || p.Why != "configmap/web does not exist any more: running pods keep running" || !strings.HasPrefix(p.Next, "put configmap/web back") || !slices.Equal(p.Because, []checksum.Source{web}) {
		t.Errorf("it is %+v", p)
	}
	f.Outcomes = nil
	if p := answer.ProgressOf(f, w, now()); p.State != answer.Unknown || !strings.Contains(p.Why, "configstamp said earlier: configmap/web does not exist any more") {
		t.Errorf("without an answer it is %+v", p)
	}
}

// A revision is because of a source only if the stamps say that content differs.
func TestRevisions_Because(t *testing.T) {
	before := map[string]string{webStamp: value("a", "all", "1"), "secret.configstamp.dev/db": value("a", "all", "5")}
	for name, one := range map[string]struct {
		now      map[string]string
		template string
		want     string
	}{
		"content":         {map[string]string{webStamp: value("a", "all", "2"), "secret.configstamp.dev/db": value("a", "all", "5")}, "x", "configmap/web changed"},
		"both":            {map[string]string{webStamp: value("a", "all", "2"), "secret.configstamp.dev/db": value("a", "all", "6")}, "x", "configmap/web and secret/db changed"},
		"another key":     {map[string]string{webStamp: value("b", "all", "2"), "secret.configstamp.dev/db": value("a", "all", "6")}, "x", "secret/db changed"},
		"other keys":      {map[string]string{webStamp: value("a", "12345678", "2"), "secret.configstamp.dev/db": value("a", "all", "6")}, "x", "secret/db changed"},
		"absent":          {map[string]string{webStamp: checksum.Absent, "secret.configstamp.dev/db": value("a", "all", "5")}, "x", "configmap/web changed"},
		"template alone":  {before, "y", "the template changed"},
		"both at once":    {map[string]string{webStamp: value("a", "all", "2"), "secret.configstamp.dev/db": value("a", "all", "5")}, "y", "configmap/web changed; the template changed"},
		"nothing":         {before, "x", "not known: nothing that the cluster keeps differs from the previous revision"},
		"pruned":          {map[string]string{webStamp: value("a", "all", "1")}, "y", "the template changed"},
		"first of a name": {map[string]string{webStamp: value("a", "all", "1"), "secret.configstamp.dev/db": value("a", "all", "5"), "secret.configstamp.dev/new": value("a", "all", "5")}, "x", "secret/new changed"},
		"stamped by a new template": {map[string]string{webStamp: value("a", "all", "1"), "secret.configstamp.dev/db": value("a", "all", "5"), "secret.configstamp.dev/new": value("a", "all", "5")},
			"y", "the template changed"},
	} {
		t.Run(name, func(t *testing.T) {
			f, w := fleet(t, "")
			f.Revisions["u"] = []seen.Revision{{Number: 2, Stamps: one.now, Template: one.template}, {Number: 1, Stamps: before, Template: "x"}}
			revisions := answer.RevisionsOf(f, w)
			if got := revisions[0].Because(); got != one.want {
				t.Errorf("because %q, want %q", got, one.want)
			}
			if got := revisions[1].Because(); got != "the oldest revision that is kept" {
				t.Errorf("the first: %q", got)
			}
		})
	}
}

// Of a writer it is known that he wrote for a revision only if that was the last write.
func TestRevisions_ByWhom(t *testing.T) {
	f, w := fleet(t, "")
	f.Revisions["u"] = []seen.Revision{
		{Number: 4, Created: now().Add(-time.Minute), Stamps: map[string]string{webStamp: value("a", "all", "4")}},
		{Number: 3, Created: now().Add(-9 * time.Minute), Stamps: map[string]string{webStamp: value("a", "all", "3")}},
		{Number: 2, Created: now().Add(-time.Hour), Stamps: map[string]string{webStamp: value("a", "all", "2")}},
		{Number: 1, Created: now().Add(-2 * time.Hour), Stamps: map[string]string{webStamp: value("a", "all", "1")}},
	}
	revisions := answer.RevisionsOf(f, w)
	if !slices.Equal(revisions[1].By, []string{"kubectl-edit"}) || len(revisions[0].By) > 0 || len(revisions[2].By) > 0 {
		t.Errorf("by %v, %v and %v", revisions[0].By, revisions[1].By, revisions[2].By)
	}
}

func TestServed(t *testing.T) {
	for name, one := range map[string]struct {
		label     string
		namespace seen.Namespace
		listed    []string
		want      seen.Standing
	}{
		"by the Namespace":         {namespace: seen.Namespace{Known: true, Namespace: checksum.Namespace{OptedIn: true}}, want: seen.Served},
		"no label":                 {namespace: seen.Namespace{Known: true}, want: seen.NotServed},
		"nobody knows":             {want: seen.MaybeServed},
		"its own label":            {label: "enabled", want: seen.Served},
		"its own no":               {label: "disabled", want: seen.NotServed},
		"a list of namespaces":     {listed: []string{"shop"}, want: seen.Served},
		"a list without it":        {label: "enabled", listed: []string{"other"}, want: seen.NotServed},
		"a value that is no value": {label: "true", namespace: seen.Namespace{Known: true}, want: seen.NotServed},
	} {
		t.Run(name, func(t *testing.T) {
			f, w := fleet(t, "")
			w.Object.Labels = map[string]string{checksum.InjectLabel: one.label}
			f.Settings.Namespaces, f.Namespaces["shop"] = one.listed, one.namespace
			got, why := f.Serves(w)
			if got != one.want {
				t.Errorf("it is %s, want %s", got, one.want)
			}
			if words, _ := answer.NotServedWords(f.Settings, one.namespace, w, why); one.label == "true" && !strings.Contains(words, `inject="true" is not "enabled"`) {
				t.Errorf("the words are %q", words)
			}
		})
	}
}

func TestSourcesIn(t *testing.T) {
	got := answer.SourcesIn("secret/db, configmap/web and configmap/a by Deployment configmap/no")
	want := []checksum.Source{{Kind: checksum.ConfigMap, Name: "a"}, web, {Kind: checksum.Secret, Name: "db"}}
	if !slices.Equal(got, want) {
		t.Errorf("found %v", got)
	}
	if got := answer.SourcesIn("spec.containers{web}"); len(got) > 0 {
		t.Errorf("found %v", got)
	}
}

// A setting that cannot be read is mended where it stands.
func TestProgress_WhatCannotBeReadIsEdited(t *testing.T) {
	for want, at := range map[string]checksum.Origin{"kubectl edit deployment/app -n shop": checksum.OfWorkload, "kubectl edit namespace/shop": checksum.OfNamespace} {
		annotations, settings := `"configstamp.dev/window":"Mon"`, map[string]string(nil)
		if at == checksum.OfNamespace {
			annotations, settings = "", map[string]string{"configstamp.dev/window": "Mon"}
		}
		f, w := fleet(t, annotations)
		f.Namespaces["shop"] = seen.Namespace{Known: true, Namespace: checksum.Namespace{OptedIn: true, Settings: settings}}
		f.Outcomes[w.Ref] = seen.Outcome{Code: seen.Unreadable}
		if p := answer.ProgressOf(f, w, now()); p.Next != want {
			t.Errorf("of the %s: %q", at, p.Next)
		}
	}
}

// A failure keeps its reason and its advice after its own controller has given up, and after its event is gone.
func TestProgress_SaysWhatFailed(t *testing.T) {
	const said = "the rollout has failed: container app: CrashLoopBackOff, after Error with exit code 2 (1 of 1 new pods). kubectl describe shows more. " +
		"Put the old content back, or fix it: either way it rolls out by itself. kubectl rollout undo does not bring back old content"
	failed := workload.Status{Phase: workload.Failed, Why: "ProgressDeadlineExceeded", Wanted: 2, Missing: 2}
	refused, rolling := failed, workload.Status{Phase: workload.Rolling, Wanted: 2, Missing: 2, Refused: true}
	refused.Refused = true
	homeless := seen.Pod{Pod: workload.Pod{Name: "app-1", Unscheduled: "Unschedulable", Stamps: map[string]string{webStamp: value("a", "all", "1")}}}
	for sentence, c := range map[string]struct {
		status workload.Status
		event  string
		pods   []seen.Pod
		state  answer.State
		words  []string
		not    string
	}{
		"the crash stays":                     {failed, said, nil, answer.Failed, []string{"CrashLoopBackOff", "exit code 2", "follow the advice of its event RolloutFailed"}, "ProgressDeadlineExceeded"},
		"it is refused, and nothing is said":  {refused, "", nil, answer.Failed, []string{"FailedCreate", "{.status.conditions"}, "by itself"},
		"it is refused, and not given up":     {rolling, "", nil, answer.Rolling, []string{"0 of 2", "FailedCreate", "{.status.conditions"}, "by itself"},
		"it has no node, and nothing is said": {failed, "", []seen.Pod{homeless}, answer.Failed, []string{"Unschedulable", "kubectl describe pod app-1 -n shop"}, "by itself"},
		"the controller has said that":        {failed, "the rollout has failed: pod app-1 waits for a node (Unschedulable). The content need not be at fault: kubectl describe pod app-1 -n shop shows why", nil, answer.Failed, []string{"Unschedulable", "follow the advice of its event RolloutFailed"}, "by itself"},
		"that, in words that nobody reads":    {failed, "lorem ipsum", []seen.Pod{homeless}, answer.Failed, []string{"lorem ipsum", "kubectl describe pod app-1 -n shop"}, "by itself"},
		"nothing shows why":                   {failed, "", nil, answer.Failed, []string{"ProgressDeadlineExceeded", "put the old content back"}, "FailedCreate"},
	} {
		t.Run(sentence, func(t *testing.T) {
			f, w := fleet(t, "")
			f.Outcomes[w.Ref] = seen.Outcome{Code: seen.InStep}
			w.Status, w.Records.Stamps = c.status, map[string]string{webStamp: value("a", "all", "1")}
			if c.event != "" {
				f.Events = []seen.Event{{Kind: "Deployment", Namespace: "shop", Name: "app", Reason: "RolloutFailed", Message: c.event, Warning: true, First: now(), Last: now()}}
			}
			p := answer.WhyOf(f, w, c.pods, nil, now()).Now
			text := p.Why + " NEXT " + p.Next
			for _, word := range c.words {
				if !strings.Contains(text, word) {
					t.Errorf("it does not say %q: %s", word, text)
				}
			}
			if p.State != c.state || strings.Contains(text, c.not) {
				t.Errorf("it is %s, and says %s; want %s, and not %q", p.State, text, c.state, c.not)
			}
		})
	}
}
