package warning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

var kinds = workload.Builtin().With(workload.Known()...)

func ref(text string) workload.Ref {
	kind, name, _ := strings.Cut(text, "/")
	for _, k := range kinds {
		if strings.EqualFold(k.Name, kind) {
			return workload.Ref{Kind: k, Namespace: "shop", Name: name}
		}
	}
	panic(text)
}

func rolls(texts ...string) (all []impact.Roll) {
	for _, text := range texts {
		all = append(all, impact.Roll{Workload: ref(text)})
	}
	return all
}

// unseen are workloads that roll, and no pod starts by it.
func unseen(texts ...string) []impact.Roll {
	all := rolls(texts...)
	for i := range all {
		all[i].Waits = "later runs start with it"
	}
	return all
}

// stay is a workload that stays, for a reason.
func stay(text string, why reason.Reason, changes ...func(*impact.Stay)) impact.Stay {
	s := impact.Stay{Workload: ref(text), Source: edited.At.Source, Why: why}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func would(s *impact.Stay)   { s.Would = true }
func already(s *impact.Stay) { s.Before = true }

func lacks(key string) func(*impact.Stay) {
	return func(s *impact.Stay) {
		s.Finding = checksum.Finding{Reason: reason.MissingKey, Source: s.Source, Key: key}
	}
}

var (
	edited  = impact.Edit{At: rollout.SourceRef{Namespace: "shop", Source: checksum.Source{Kind: checksum.ConfigMap, Name: "config"}}, Is: &checksum.Content{}}
	deleted = impact.Edit{At: edited.At}
	frozen  = impact.Edit{At: edited.At, Immutable: true}
)

// at is a hold until a time.
func at(why reason.Reason, until time.Time) checksum.Hold {
	return checksum.Hold{Reason: why, Until: until}
}

func TestSentences(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	night := time.Date(2026, 7, 1, 22, 0, 0, 0, berlin)
	noon := time.Date(2026, 7, 2, 12, 0, 0, 0, time.UTC)
	held := func(holds ...checksum.Hold) (answer impact.Answer) {
		for i, hold := range holds {
			answer.Rolls = append(answer.Rolls, impact.Roll{Workload: ref(fmt.Sprintf("deployment/held-%d", i)), Held: hold})
		}
		return answer
	}
	for about, c := range map[string]struct {
		edit   *impact.Edit
		answer impact.Answer
		want   []string
	}{
		"nothing":                {&edited, impact.Answer{}, nil},
		"one":                    {&edited, impact.Answer{Rolls: rolls("deployment/web"), First: 1}, []string{"this change rolls out deployment/web"}},
		"three, one first":       {&edited, impact.Answer{Rolls: rolls("deployment/b", "deployment/a", "daemonset/c"), First: 1}, []string{"this change rolls out deployment/b, deployment/a and daemonset/c, one first"}},
		"three at once":          {&edited, impact.Answer{Rolls: rolls("deployment/b", "deployment/a", "daemonset/c"), First: 3}, []string{"this change rolls out deployment/b, deployment/a and daemonset/c"}},
		"four":                   {&edited, impact.Answer{Rolls: rolls("deployment/payment-api", "deployment/legacy-app", "deployment/c", "deployment/d"), First: 1}, []string{"this change rolls out deployment/payment-api, deployment/legacy-app and 2 more, one first"}},
		"four, three first":      {&edited, impact.Answer{Rolls: rolls("deployment/a", "deployment/b", "deployment/c", "deployment/d"), First: 3}, []string{"this change rolls out deployment/a, deployment/b and 2 more, three first"}},
		"the first is unguarded": {&edited, impact.Answer{Rolls: rolls("deployment/a", "deployment/b"), First: 1, Unguarded: []workload.Ref{ref("deployment/b")}}, []string{"this change rolls out deployment/a and deployment/b, one first", "deployment/b has neither a readiness probe nor minReadySeconds: new pods that crash can replace all old ones"}},
		"all pods at once": {&edited, impact.Answer{Rolls: []impact.Roll{{Workload: ref("statefulset/db"), Recreates: true}}, First: 1},
			[]string{"this change rolls out statefulset/db", "statefulset/db will be unavailable meanwhile: the strategy replaces all pods at once"}},
		"two are unguarded":     {&edited, impact.Answer{Rolls: rolls("deployment/a", "deployment/b"), First: 2, Unguarded: []workload.Ref{ref("deployment/a"), ref("deployment/b")}}, []string{"this change rolls out deployment/a and deployment/b", "deployment/a and deployment/b have neither a readiness probe nor minReadySeconds: new pods that crash can replace all old ones"}},
		"a custom kind":         {&edited, impact.Answer{Rolls: rolls("rollout/web"), First: 1}, []string{"this change rolls out rollout.argoproj.io/web"}},
		"a deletion":            {&deleted, impact.Answer{Rolls: rolls("deployment/web"), First: 1}, []string{"this deletion rolls out deployment/web"}},
		"at night":              {&edited, held(at(reason.OutsideWindow, night)), []string{"deployment/held-0 rolls out when the window opens, 2026-07-01 22:00 Europe/Berlin"}},
		"two at night":          {&edited, held(at(reason.OutsideWindow, night), at(reason.OutsideWindow, night)), []string{"deployment/held-0 and deployment/held-1 roll out when the window opens, 2026-07-01 22:00 Europe/Berlin"}},
		"paused until a time":   {&edited, held(at(reason.Paused, noon.In(time.FixedZone("", 7200)))), []string{"deployment/held-0 rolls out when the pause ends, 2026-07-02 12:00 UTC"}},
		"too soon":              {&edited, held(at(reason.TooSoon, noon.Add(7*time.Second).In(time.Local))), []string{"deployment/held-0 rolls out when the min-interval has passed, 2026-07-02 12:00:07 UTC"}},
		"the soonest first":     {&edited, held(at(reason.Paused, noon), at(reason.OutsideWindow, night)), []string{"deployment/held-1 rolls out when the window opens, 2026-07-01 22:00 Europe/Berlin", "deployment/held-0 rolls out when the pause ends, 2026-07-02 12:00 UTC"}},
		"many times":            {&edited, held(at(reason.TooSoon, noon.Add(4*time.Hour)), at(reason.TooSoon, noon.Add(3*time.Hour)), at(reason.TooSoon, noon.Add(2*time.Hour)), at(reason.TooSoon, noon.Add(time.Hour))), []string{"deployment/held-3 rolls out when the min-interval has passed, 2026-07-02 13:00 UTC", "deployment/held-2 rolls out when the min-interval has passed, 2026-07-02 14:00 UTC", "deployment/held-1 and deployment/held-0 roll out later, when their settings allow it"}},
		"observed":              {&edited, impact.Answer{Stays: []impact.Stay{stay("deployment/web", reason.ObserveMode, would)}}, []string{"deployment/web would roll out, but the mode is observe"}},
		"an undo of another":    {&edited, impact.Answer{Stays: []impact.Stay{stay("deployment/web", reason.Halted, would), stay("deployment/a", reason.DeclinedKept)}}, []string{"deployment/web waits, because an undo of another workload declined this content", "deployment/a keeps older content, because an undo declined this content"}},
		"paused":                {&edited, impact.Answer{Stays: []impact.Stay{stay("deployment/web", reason.Paused, would)}}, []string{"deployment/web rolls out when configstamp.dev/pause is removed"}},
		"two paused":            {&edited, impact.Answer{Stays: []impact.Stay{stay("deployment/a", reason.Paused, would), stay("deployment/b", reason.Paused, would)}}, []string{"deployment/a and deployment/b roll out when configstamp.dev/pause is removed"}},
		"an unreadable setting": {&edited, impact.Answer{Stays: []impact.Stay{stay("deployment/web", reason.UnreadableSetting, would)}}, []string{"deployment/web rolls out when a setting that cannot be read is fixed"}},
		"another one missing":   {&edited, impact.Answer{Stays: []impact.Stay{stay("deployment/web", reason.MissingSource, would)}}, []string{"deployment/web rolls out when everything else that new pods need exists"}},
		"no pod starts":         {&edited, impact.Answer{Rolls: unseen("cronjob/report", "deployment/sleeps")}, []string{"no pod of cronjob/report and deployment/sleeps restarts now: pods that start later use the new content"}},
		"nothing on record":     {&edited, impact.Answer{Stays: []impact.Stay{stay("deployment/new", reason.Recorded)}}, []string{"no pod of deployment/new restarts: no checksum was on record, and the new content is recorded"}},
		"it is required":        {&deleted, impact.Answer{Stays: []impact.Stay{stay("deployment/web", reason.MissingSource)}, Rolls: rolls("deployment/b"), First: 1}, []string{"without this configmap no new pod of deployment/web can start", "this deletion rolls out deployment/b"}},
		"it is immutable": {&frozen, impact.Answer{Stays: []impact.Stay{stay("deployment/web", reason.MissingSource)}, Rolls: rolls("deployment/b"), First: 1}, []string{
			"without this configmap no new pod of deployment/web can start",
			"if it is created again with other content, an immutable configmap is not read by nodes that run pods of deployment/web and deployment/b: give the new one another name, or first scale them to zero",
			"this deletion rolls out deployment/b"}},
		"nobody uses it": {&frozen, impact.Answer{}, nil},
		"it is pinned": {&deleted, impact.Answer{Stays: []impact.Stay{stay("deployment/web", reason.MissingSource, func(s *impact.Stay) { s.Pinned = true })}}, []string{
			"deployment/web keeps the pinned content, new pods too while pins are on; without this configmap nothing rolls out"}},
		"a key is required":     {&edited, impact.Answer{Stays: []impact.Stay{stay("deployment/a", reason.MissingKey, lacks("greeting")), stay("deployment/b", reason.MissingKey, lacks("greeting"))}}, []string{`without the key "greeting" no new pod of deployment/a and deployment/b can start`}},
		"keys are required":     {&edited, impact.Answer{Stays: []impact.Stay{stay("deployment/a", reason.MissingKey, lacks("greeting")), stay("deployment/b", reason.MissingKey, lacks("color"))}}, []string{`without the key "color" and 1 more no new pod of deployment/a and deployment/b can start`}},
		"it lacked that before": {&edited, impact.Answer{Stays: []impact.Stay{stay("deployment/a", reason.MissingKey, lacks("greeting"), already)}}, nil},
		"others stay": {&edited, impact.Answer{Stays: []impact.Stay{
			stay("deployment/a", reason.KeyNotUsed), stay("deployment/b", reason.UseLeftOut), stay("deployment/c", reason.SourceLeftOut), stay("deployment/d", reason.NotMounted),
			stay("deployment/e", reason.Kept), stay("deployment/f", reason.OptedOut), stay("deployment/g", reason.TemplateUnreadable), stay("job/h", reason.AfterCreation),
		}}, nil},
	} {
		for i := range c.want {
			c.want[i] = "configstamp: " + c.want[i]
		}
		if got := sentences(c.edit, &c.answer); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", about, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// The API server keeps 256 runes of a warning, and 4 KiB of all.
func TestSentencesFit(t *testing.T) {
	long := func(kind string, n int) string { return fmt.Sprintf("%s/%s%03d", kind, strings.Repeat("x", 250), n) }
	noon := time.Date(2026, 7, 2, 12, 0, 0, 0, time.UTC)
	for _, many := range []int{1, 2, 3, 4, 1000} {
		answer := impact.Answer{First: 1}
		for n := range many {
			hold := at(reason.TooSoon, noon.Add(time.Duration(n)*time.Hour))
			answer.Rolls = append(answer.Rolls, impact.Roll{Workload: ref(long("deployment", n))}, impact.Roll{Workload: ref(long("statefulset", n)), Held: hold})
			answer.Rolls = append(answer.Rolls, unseen(long("cronjob", n))...)
			answer.Unguarded = append(answer.Unguarded, ref(long("deployment", n)))
			for _, why := range []reason.Reason{reason.ObserveMode, reason.Paused, reason.UnreadableSetting, reason.MissingKey} {
				answer.Stays = append(answer.Stays, stay(long("daemonset", n), why, would))
			}
			answer.Stays = append(answer.Stays, stay(long("rollout", n), reason.MissingKey, lacks(strings.Repeat("k", 253)+fmt.Sprint(n))), stay(long("rollout", n), reason.Recorded))
		}
		all := sentences(&edited, &answer)
		if len(all) < 9 || len(strings.Join(all, "")) > 4<<10 {
			t.Errorf("%d sentences of %d bytes: %s", len(all), len(strings.Join(all, "")), strings.Join(all, "\n"))
		}
		for _, one := range all {
			if !strings.HasPrefix(one, "configstamp: ") || utf8.RuneCountInString(one) > mostRunes {
				t.Errorf("%d runes: %s", utf8.RuneCountInString(one), one)
			}
			if many > 1 && !strings.Contains(one, " more") && !strings.Contains(one, "min-interval") {
				t.Errorf("nothing is counted in %s", one)
			}
		}
	}
}
