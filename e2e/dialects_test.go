package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/harness"
)

// Workloads that were written for Reloader or wave, in namespaces without our
// label: they roll for the same edits as there.

// shelf is what there is in each namespace; the Deployment uses the first four.
var shelf = []string{"configmap/web-message", "configmap/marked", "secret/db-password", "secret/marked", "configmap/web-theme", "secret/web-message"}

const auto = "configmap/web-message configmap/marked secret/db-password secret/marked"

// annotated adds annotations to an object, or to its pod template.
func annotated(manifest string, template bool, annotations map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		pairs = append(pairs, fmt.Sprintf("%q: %q", key, annotations[key]))
	}
	text := "annotations: {" + strings.Join(pairs, ", ") + "}"
	if template {
		return strings.Replace(manifest, "metadata: {labels:", "metadata: {"+text+", labels:", 1)
	}
	return strings.Replace(manifest, "metadata: {name:", "metadata: {"+text+", name:", 1)
}

func TestDialects_RollForTheSameEdits(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	const r, w = "reloader.stakater.com/", "wave.pusher.com/"
	for about, c := range map[string]struct {
		annotations map[string]string
		rolls       string
	}{
		"auto":                       {map[string]string{r + "auto": "true"}, auto},
		"auto, T":                    {map[string]string{r + "auto": "T"}, auto},
		"auto, 1":                    {map[string]string{r + "auto": "1"}, auto},
		"auto, TRUE":                 {map[string]string{r + "auto": "TRUE"}, auto},
		"not auto":                   {map[string]string{r + "auto": "false"}, ""},
		"not auto, 0":                {map[string]string{r + "auto": "0"}, ""},
		"ConfigMaps alone":           {map[string]string{"configmap." + r + "auto": "t"}, "configmap/web-message configmap/marked"},
		"Secrets alone":              {map[string]string{"secret." + r + "auto": "True"}, "secret/db-password secret/marked"},
		"named ConfigMaps":           {map[string]string{"configmap." + r + "reload": "web-message,web-theme"}, "configmap/web-message configmap/web-theme"},
		"named Secrets":              {map[string]string{"secret." + r + "reload": "db-password"}, "secret/db-password"},
		"by an expression":           {map[string]string{"configmap." + r + "reload": "web-.*"}, "configmap/web-message configmap/web-theme"},
		"by an anchored alternation": {map[string]string{"secret." + r + "reload": "db|web-message"}, "secret/web-message"},
		"searched and marked":        {map[string]string{r + "search": "true"}, "configmap/marked secret/marked"},
		"excluded ConfigMaps":        {map[string]string{r + "auto": "true", "configmaps.exclude." + r + "reload": "web-message, marked"}, "secret/db-password secret/marked"},
		"excluded Secrets":           {map[string]string{r + "auto": "true", "secrets.exclude." + r + "reload": "marked"}, "configmap/web-message configmap/marked secret/db-password"},
		"guide: everything":          {map[string]string{r + "match": "true"}, auto},
		"guide: a ConfigMap":         {map[string]string{r + "search": "true", r + "match": "configmap=web-message"}, "configmap/web-message"},
		"guide: a Secret":            {map[string]string{r + "search": "true", r + "match": "secret=db-password"}, "secret/db-password"},
		"guide: both":                {map[string]string{r + "search": "true", r + "match": "configmap=web-message|secret=db-password"}, "configmap/web-message secret/db-password"},
		"guide: all but":             {map[string]string{r + "match": "true", r + "ignore": "configmap=web-message|secret=db-password"}, "configmap/marked secret/marked"},
		"wave":                       {map[string]string{w + "update-on-config-change": "true"}, auto},
		"wave, extras":               {map[string]string{w + "update-on-config-change": "true", w + "extra-configmaps": " web-theme ", w + "extra-secrets": "web-message"}, auto + " configmap/web-theme secret/web-message"},
		"wave, off":                  {map[string]string{w + "update-on-config-change": "false"}, ""},
		"neither":                    {map[string]string{"example.com/auto": "true"}, ""},
	} {
		for _, template := range []bool{false, true} {
			if template && strings.HasPrefix(about, "wave") {
				continue // wave reads the workload's own alone
			}
			t.Run(fmt.Sprintf("%s, on the template: %t", about, template), func(t *testing.T) {
				t.Parallel()
				s := run.PlainSpace(t)
				for _, source := range shelf {
					s.Set(source, "k", "1")
					if strings.HasSuffix(source, "/marked") {
						s.Patch(source, `{"metadata":{"annotations":{"reloader.stakater.com/match":"true"}}}`)
					}
				}
				s.Create(annotated(deployment("d", shelf[:4]...), template, c.annotations))
				s.Patch("deployment/d", `{"metadata":{"annotations":{"configstamp.dev/min-interval":"1ms"}}}`) // six rolls in a row are no storm
				rolling := strings.Fields(c.rolls)
				// What the annotation alone names is found in the webhook's store, which may
				// be a moment behind: then it is recorded a moment later.
				s.Eventually("waiting until all that counts is on record", func() error {
					for _, source := range rolling {
						if s.Record("deployment/d", source) == "" {
							return fmt.Errorf("%s is not", source)
						}
					}
					return nil
				})
				for _, source := range shelf {
					before := s.Settled("deployment/d")
					s.Patch(source, `{"data":{"k":"Mg=="}}`) // its annotations stay
					if slices.Contains(rolling, source) {
						s.WantRolls(before, rolls{"deployment/d": 1})
						continue
					}
					s.Quiet()
					s.Unchanged(before)
				}
			})
		}
	}
}

func TestDialects_ASourceThatReloaderIgnores(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.Patch("configmap/c", `{"metadata":{"annotations":{"reloader.stakater.com/ignore":"true"}}}`)
	s.Create(annotated(deployment("d", "configmap/c"), false, map[string]string{"reloader.stakater.com/auto": "true", "configmap.reloader.stakater.com/reload": "c"}))
	before := s.Settled("deployment/d")
	s.Patch("configmap/c", `{"data":{"k":"2"}}`)
	s.Quiet()
	s.Unchanged(before)
}

// Each kind of workload, the other product's annotations on it.
func TestDialects_OnEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range restamped {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := run.PlainSpace(t)
			name := strings.ToLower(kind) + "/w"
			s.Set("configmap/c", "k", "1")
			s.Create(annotated(workload(kind, "w", envFrom("configmap/c")), false, map[string]string{"reloader.stakater.com/auto": "true"}))
			wantStamp(t, s, name, "configmap/c")
			s.Set("configmap/c", "k", "2")
			s.Eventually("waiting until it carries the new content", func() error {
				if got, want := harness.Stamps(s.Get(name))[harness.StampKey("configmap/c")], s.Digest("configmap/c"); got != want {
					return fmt.Errorf("stamp %q, want %q", got, want)
				}
				return nil
			})
		})
	}
}

// Row 6 and row 17 of the peers' faults, in their own words.
func TestDialects_ABadExpressionHoldsItsOwnWorkloadAlone(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.Create(annotated(deployment("bad", "configmap/c"), false, map[string]string{"configmap.reloader.stakater.com/reload": "c,web-("}))
	if warned := strings.Join(s.Warnings(), "\n"); !strings.Contains(warned, `configmap.reloader.stakater.com/reload: "c,web-(": "web-(" is not a regular expression`) {
		t.Errorf("warned of %q", warned)
	}
	for i := range 5 {
		s.Create(annotated(deployment(fmt.Sprint("good-", i), "configmap/c"), false, map[string]string{"configmap.reloader.stakater.com/reload": "c"}))
	}
	before := s.Settled("deployment/good-0", "deployment/good-1", "deployment/good-2", "deployment/good-3", "deployment/good-4")
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/good-0": 1, "deployment/good-1": 1, "deployment/good-2": 1, "deployment/good-3": 1, "deployment/good-4": 1})
	s.WantNote("deployment/bad", `PolicyUnreadable: configmap.reloader.stakater.com/reload: "c,web-(": "web-(" is not a regular expression`)
	before = s.Counts()
	s.Patch("deployment/bad", `{"metadata":{"annotations":{"configmap.reloader.stakater.com/reload":"c"}}}`)
	s.WantRolls(before, rolls{"deployment/bad": 1})
}

// What somebody had opted out of here stays out.
func TestDialects_OurLabelOverrulesThem(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.Create(labelled(annotated(deployment("d", "configmap/c"), true, map[string]string{"reloader.stakater.com/auto": "true"}), checksum.InjectDisabled))
	before := s.Settled("deployment/d")
	s.Set("configmap/c", "k", "2")
	s.Quiet()
	s.Unchanged(before)
}

// In a namespace of ours, they choose what counts.
func TestDialects_InALabelledNamespace(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Set("configmap/other", "k", "1")
	s.Create(annotated(deployment("d", "configmap/c", "configmap/other"), false, map[string]string{"configmap.reloader.stakater.com/reload": "c"}))
	before := s.Settled("deployment/d")
	s.Set("configmap/other", "k", "2")
	s.Quiet()
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

// A fleet that was rolled by Reloader until today is adopted without a restart.
func TestDialects_AdoptionRestartsNothing(t *testing.T) {
	product := run.Exclusive(t)
	off := harness.Usual()
	off.Webhook, off.Controller = nil, nil
	harness.Must(t, product.Restart(t.Context(), off))
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.Create(annotated(deployment("d", "configmap/c"), false, map[string]string{"reloader.stakater.com/auto": "true"}))
	before := s.Settled("deployment/d")
	s.Set("configmap/c", "k", "2")
	s.Quiet()
	s.Unchanged(before) // off by default
	if object := s.Get("deployment/d"); len(harness.Stamps(object))+len(harness.Baseline(object)) > 0 {
		t.Errorf("served without the flag: %s", state(object))
	}
	harness.Must(t, product.Restart(t.Context(), harness.Usual()))
	wantBaselines(t, s, map[string][]string{"deployment/d": {"configmap/c"}})
	s.Unchanged(before)
	s.Set("configmap/c", "k", "3")
	s.WantRolls(before, rolls{"deployment/d": 1})
}
