package checksum_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
)

// shopful is what there is in the namespace: of each its annotations.
var shopful = map[string]map[string]string{
	"configmap/web-message": nil,
	"configmap/web-theme":   nil,
	"configmap/my-config":   nil,
	"configmap/my.config":   nil,
	"configmap/marked":      {"reloader.stakater.com/match": "true"},
	"configmap/ignored":     {"reloader.stakater.com/ignore": "true"},
	"secret/db-password":    nil,
	"secret/web-message":    nil,
	"secret/marked":         {"reloader.stakater.com/match": "1"},
}

// referenced is what the pod template names.
var referenced = []string{"configmap/web-message", "configmap/marked", "configmap/ignored", "secret/db-password", "secret/marked"}

const all = "configmap/marked configmap/web-message secret/db-password secret/marked"

// countedBy lists what counts for a workload with these annotations.
func countedBy(t *testing.T, dialects []checksum.Dialect, workload, template map[string]string) (counted string, foreign *checksum.Foreign) {
	t.Helper()
	content := map[checksum.Source]*checksum.Content{}
	for text, annotations := range shopful {
		source, err := checksum.ParseSource(text)
		if err != nil {
			t.Fatal(err)
		}
		content[source] = checksum.ContentOfConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Data: map[string]string{"k": "1"}})
	}
	var references []checksum.Reference
	for _, text := range referenced {
		source, _ := checksum.ParseSource(text)
		references = append(references, envFrom(source))
	}
	foreign = checksum.Translate(dialects, namespace, workload, template)
	policy := checksum.DefaultPolicy().Translated(foreign, func(kind checksum.Kind) (names []string) {
		for source := range content {
			if source.Kind == kind {
				names = append(names, source.Name)
			}
		}
		return names
	})
	// What gets a stamp at a creation counts.
	decision := decide(ring, admissionCase{
		Namespace: namespace, Create: true, Fresh: true, Policy: policy, Selections: checksum.Selections(references, policy),
		Content: func(source checksum.Source) *checksum.Content { return content[source] },
	})
	var sources []string
	for key := range decision.Records.Stamps {
		sources = append(sources, strings.Replace(key, ".configstamp.dev/", "/", 1))
	}
	slices.Sort(sources)
	return strings.Join(sources, " "), foreign
}

var bothDialects = []checksum.Dialect{checksum.Reloader, checksum.Wave}

func TestReloader(t *testing.T) {
	const domain = "reloader.stakater.com/"
	for about, c := range map[string]struct {
		annotations map[string]string
		counted     string
		optsIn      bool
	}{
		"auto":                               {map[string]string{domain + "auto": "true"}, all, true},
		"auto, false":                        {map[string]string{domain + "auto": "false"}, "", false},
		"ConfigMaps alone":                   {map[string]string{"configmap." + domain + "auto": "true"}, "configmap/marked configmap/web-message", true},
		"Secrets alone":                      {map[string]string{"secret." + domain + "auto": "true"}, "secret/db-password secret/marked", true},
		"both by one is as auto":             {map[string]string{domain + "auto": "false", "secret." + domain + "auto": "true", "configmap." + domain + "auto": "1"}, all, true},
		"named":                              {map[string]string{"configmap." + domain + "reload": "web-message"}, "configmap/web-message", true},
		"named, not referenced":              {map[string]string{"configmap." + domain + "reload": "web-theme"}, "configmap/web-theme", true},
		"named, blanks and a comma too many": {map[string]string{"configmap." + domain + "reload": " web-message , web-theme,"}, "configmap/web-message configmap/web-theme", true},
		"named Secrets":                      {map[string]string{"secret." + domain + "reload": "web-message"}, "secret/web-message", true},
		"named, and there is none":           {map[string]string{"secret." + domain + "reload": "nobody"}, "", true},
		"by an expression":                   {map[string]string{"configmap." + domain + "reload": "web-.*"}, "configmap/web-message configmap/web-theme", true},
		"an alternation is for the whole":    {map[string]string{"configmap." + domain + "reload": "web|web-theme"}, "configmap/web-theme", true},
		"a dot is any sign":                  {map[string]string{"configmap." + domain + "reload": "my.config"}, "configmap/my-config configmap/my.config", true},
		"auto and named":                     {map[string]string{"secret." + domain + "auto": "true", "configmap." + domain + "reload": "web-theme"}, "configmap/web-theme secret/db-password secret/marked", true},
		"searched and marked":                {map[string]string{domain + "search": "true"}, "configmap/marked secret/marked", true},
		"not searched":                       {map[string]string{domain + "search": "false"}, "", false},
		"excluded":                           {map[string]string{domain + "auto": "true", "configmaps.exclude." + domain + "reload": "web-message,marked", "secrets.exclude." + domain + "reload": "marked"}, "secret/db-password", true},
		"exclusion is by exact names":        {map[string]string{domain + "auto": "true", "configmaps.exclude." + domain + "reload": "web-.*"}, all, true},
		"an ignored source, although named":  {map[string]string{"configmap." + domain + "reload": "ignored,web-theme"}, "configmap/web-theme", true},
		"the guide's auto":                   {map[string]string{domain + "match": "true"}, all, true},
		"the guide's names":                  {map[string]string{domain + "search": "true", domain + "match": "configmap=web-message|secret=db-password"}, "configmap/web-message secret/db-password", true},
		"the guide's one name":               {map[string]string{domain + "search": "true", domain + "match": "secret=db-password"}, "secret/db-password", true},
		"the guide's exclusion":              {map[string]string{domain + "match": "true", domain + "ignore": "configmap=web-message|secret=db-password"}, "configmap/marked secret/marked", true},
		"an exclusion alone opts nobody in":  {map[string]string{"configmaps.exclude." + domain + "reload": "web-message"}, "configmap/marked secret/db-password secret/marked", false},
		"a workload that is ignored":         {map[string]string{domain + "auto": "true", domain + "ignore": "true"}, "", false},
		"how Argo Rollouts roll is ours":     {map[string]string{domain + "auto": "true", domain + "rollout-strategy": "restart"}, all, true},
		"nothing of Reloader's":              {map[string]string{"example.com/auto": "true"}, all + " configmap/ignored", false},
	} {
		t.Run(about, func(t *testing.T) {
			want := strings.Join(slices.Sorted(slices.Values(strings.Fields(c.counted))), " ")
			for where, of := range map[string][2]map[string]string{"workload": {c.annotations, nil}, "pod template": {nil, c.annotations}} {
				counted, foreign := countedBy(t, bothDialects, of[0], of[1])
				if counted != want || foreign.OptsIn() != c.optsIn {
					t.Errorf("on the %s: %q counts, want %q; opts in: %v", where, counted, want, foreign.OptsIn())
				}
			}
			if counted, foreign := countedBy(t, nil, c.annotations, nil); foreign != nil || !strings.Contains(counted, "configmap/ignored") {
				t.Errorf("it counts although the dialect does not: %q", counted)
			}
		})
	}
}

func TestBooleansInEachSpelling(t *testing.T) {
	for _, key := range []string{"reloader.stakater.com/auto", "configmap.reloader.stakater.com/auto", "secret.reloader.stakater.com/auto", "reloader.stakater.com/search", "reloader.stakater.com/match", "wave.pusher.com/update-on-config-change"} {
		for text, want := range map[string]bool{"1": true, "t": true, "T": true, "true": true, "TRUE": true, "True": true, "0": false, "f": false, "F": false, "false": false, "FALSE": false, "False": false, " true ": true} {
			foreign := checksum.Translate(bothDialects, namespace, map[string]string{key: text}, nil)
			if foreign.OptsIn() != want || len(foreign.Faults) > 0 {
				t.Errorf("%s: %q opts in: %v", key, text, foreign.OptsIn())
			}
		}
	}
}

func TestWave(t *testing.T) {
	const domain = "wave.pusher.com/"
	on := map[string]string{domain + "update-on-config-change": "true"}
	with := func(pairs ...string) map[string]string {
		annotations := maps.Clone(on)
		for i := 0; i < len(pairs); i += 2 {
			annotations[domain+pairs[i]] = pairs[i+1]
		}
		return annotations
	}
	whole := all + " configmap/ignored"
	for about, c := range map[string]struct {
		annotations map[string]string
		counted     string
		optsIn      bool
	}{
		"on":                       {on, whole, true},
		"off":                      {map[string]string{domain + "update-on-config-change": "false", domain + "extra-configmaps": "web-theme"}, "", false},
		"extra":                    {with("extra-configmaps", "web-theme, my.config"), whole + " configmap/web-theme configmap/my.config", true},
		"extra of the same name":   {with("extra-configmaps", "web-theme", "extra-secrets", "web-message"), whole + " configmap/web-theme secret/web-message", true},
		"extra with the namespace": {with("extra-configmaps", "shop/web-theme"), whole + " configmap/web-theme", true},
		"extra of another one":     {with("extra-configmaps", "other/web-theme,my.config"), whole + " configmap/my.config", true},
	} {
		t.Run(about, func(t *testing.T) {
			counted, foreign := countedBy(t, bothDialects, c.annotations, nil)
			if want := strings.Join(slices.Sorted(slices.Values(strings.Fields(c.counted))), " "); counted != want || foreign.OptsIn() != c.optsIn {
				t.Errorf("%q counts, want %q; opts in: %v", counted, want, foreign.OptsIn())
			}
		})
	}
}

func TestWhatCannotBeReadInADialectHoldsItsWorkload(t *testing.T) {
	for key, values := range map[string]map[string]string{
		"reloader.stakater.com/auto":                    {"yes": "true or false"},
		"configmap.reloader.stakater.com/reload":        {"web-(": `"web-("`, "a)(b": `"a)(b"`, "a,[": `"["`},
		"secrets.exclude.reloader.stakater.com/reload":  {"db-.*": `"db-.*": no object can have this name`, "db,a_b": `"a_b"`},
		"reloader.stakater.com/match":                   {"configmap:a": "configmap=a|secret=b", "pod=a": `"pod=a"`},
		"reloader.stakater.com/ignore":                  {"configmap=A": `"configmap=A"`},
		"deployment.reloader.stakater.com/pause-period": {"5": "duration"},
		"reloader.stakater.com/rollout-strategy":        {"blue": "rollout"},
		"wave.pusher.com/update-on-config-change":       {"on": "true or false"},
	} {
		for value, named := range values {
			foreign := checksum.Translate(bothDialects, namespace, map[string]string{key: value}, nil)
			if foreign == nil || len(foreign.Faults) != 1 || !foreign.OptsIn() {
				t.Fatalf("%s: %q: %+v", key, value, foreign)
			}
			if text := foreign.Faults[0].Error(); !strings.HasPrefix(text, key+": ") || !strings.Contains(text, named) {
				t.Errorf("%q does not name %s", text, named)
			}
			policy := checksum.DefaultPolicy().Translated(foreign, func(checksum.Kind) []string { return nil })
			if len(policy.Faults) != 1 {
				t.Errorf("%s: %q does not hold its workload", key, value)
			}
		}
	}
}

// numbered is a list of so many items.
func numbered(n int, separator, format string) string {
	list := make([]string, 0, n)
	for i := range n {
		list = append(list, fmt.Sprintf(format, i))
	}
	return strings.Join(list, separator)
}

func TestAListInADialectHasItsLimits(t *testing.T) {
	const reload = "configmap.reloader.stakater.com/reload"
	for about, c := range map[string]struct {
		key, value string
		want       string // "": it is read
	}{
		"256 names":                     {reload, numbered(256, ",", "a-name-of-some-length-%d"), ""},
		"257 names":                     {reload, numbered(257, ",", "a-%d"), "no more than 256"},
		"256 expressions":               {reload, numbered(256, ",", "web-%d.*"), ""},
		"257 pairs":                     {"reloader.stakater.com/match", numbered(257, "|", "secret=a-%d"), "no more than 256"},
		"257 pairs that are ignored":    {"reloader.stakater.com/ignore", numbered(257, "|", "secret=a-%d"), "no more than 256"},
		"257 that are excluded":         {"secrets.exclude.reloader.stakater.com/reload", numbered(257, ",", "a-%d"), "no more than 256"},
		"257 of wave's":                 {"wave.pusher.com/extra-secrets", numbered(257, ",", "a-%d"), "no more than 256"},
		"253 characters":                {reload, "." + strings.Repeat("a", 252), ""},
		"254 characters":                {reload, "." + strings.Repeat("a", 253), "no more than 253"},
		"a hash":                        {reload, "web-[0-9a-f]{64}", ""},
		"a large one":                   {reload, "a[b-z]{999}", ""},
		"two large ones":                {reload, "a[b-z]{999},b[b-z]{999}", "no more than 4000 parts"},
		"one that is repeated as whole": {reload, "(?:" + strings.Repeat("[a-z]", 20) + "){70}", "no more than 4000 parts"},
		"repeats in repeats":            {reload, "(?:[a-z]{30}){30}.{1000}", "no more than 4000 parts"},
		"classes of letters":            {reload, strings.Repeat(`\pL`, 80), "no more than 4000 parts"},
	} {
		t.Run(about, func(t *testing.T) {
			var foreign *checksum.Foreign
			took := allocated(func() {
				foreign = checksum.Translate(bothDialects, namespace, map[string]string{"wave.pusher.com/update-on-config-change": "true", c.key: c.value}, nil)
			})
			if limit := uint64(16 << 20); took > limit {
				t.Errorf("it takes %d bytes, want %d at most", took, limit)
			}
			switch {
			case c.want == "" && len(foreign.Faults) > 0, c.want != "" && (len(foreign.Faults) != 1 || !strings.Contains(foreign.Faults[0].Error(), c.want)):
				t.Errorf("%q: %v", c.want, foreign.Faults)
			case c.want == "" && len(foreign.Names) == 0:
				t.Error("the list is empty")
			}
		})
	}
}

func TestPausePeriodIsAnInterval(t *testing.T) {
	foreign := checksum.Translate(bothDialects, namespace, map[string]string{"deployment.reloader.stakater.com/pause-period": "5m"}, nil)
	for about, c := range map[string]struct {
		policy checksum.Policy
		want   time.Duration
	}{
		"alone":                {checksum.DefaultPolicy(), 5 * time.Minute},
		"over the Namespace's": {checksum.DefaultPolicy().With(onWorkload(), onNamespace("min-interval", "1h")), 5 * time.Minute},
		"under the workload's": {checksum.DefaultPolicy().With(onWorkload("min-interval", "1h")), time.Hour},
	} {
		if got := c.policy.Translated(foreign, nil).MinInterval; got != c.want {
			t.Errorf("%s: %s, want %s", about, got, c.want)
		}
	}
}

// Our own settings narrow what another product's annotations choose.
func TestOurSettingsBesideADialect(t *testing.T) {
	workload := map[string]string{"reloader.stakater.com/auto": "true", "configstamp.dev/only": "secret/*"}
	foreign := checksum.Translate(bothDialects, namespace, workload, nil)
	policy := checksum.DefaultPolicy().With(checksum.Level{Origin: checksum.OfWorkload, Annotations: workload}).Translated(foreign, nil)
	selections := checksum.Selections([]checksum.Reference{optional(envFrom(message)), envFrom(password)}, policy)
	if len(selections) != 1 || selections[0].Source != password {
		t.Errorf("%v", selections)
	}
}
