package checksum_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// What a SecretProviderClass holds is known while its pods report it, and it
// counts where the policy says so.

var vault = checksum.Source{Kind: checksum.SecretProviderClass, Name: "web-vault"}

// versions is what a pod reports, given as id, version, id, version.
func versions(pairs ...string) *checksum.Content {
	reported := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		reported[pairs[i]] = pairs[i+1]
	}
	return checksum.ContentOfVersions(reported)
}

func provided() checksum.Policy {
	policy := checksum.DefaultPolicy()
	policy.SecretProviderClasses = true
	return policy
}

var ofVault = []checksum.Reference{optional(mounted(vault))}

func TestContentOfVersions(t *testing.T) {
	content := versions("secret/db", "1")
	for about, c := range map[string]struct {
		other *checksum.Content
		same  bool
	}{
		"the same, from another pod": {versions("secret/db", "1"), true},
		"another version":            {versions("secret/db", "2"), false},
		"another id":                 {versions("secret/api", "1"), false},
		"one object more":            {versions("secret/db", "1", "secret/api", "1"), false},
		"no object":                  {versions(), false},
		"nobody reports":             {nil, false},
	} {
		if content.Equal(c.other) != c.same {
			t.Errorf("%s: same %v", about, !c.same)
		}
		s := selected(t, provided(), ofVault...)
		if c.other != nil && (ring.Digest(namespace, s, content) == ring.Digest(namespace, s, c.other)) != c.same {
			t.Errorf("%s: the digests say otherwise", about)
		}
	}
}

func TestAssessOfAClass(t *testing.T) {
	s := selected(t, provided(), ofVault...)
	value := ring.Digest(namespace, s, versions("a", "1"))
	lost := checksum.NewRing(key(3)).Digest(namespace, s, versions("a", "1"))
	for about, c := range map[string]struct {
		record  string // "" for none
		content *checksum.Content
		want    checksum.Verdict
	}{
		"nobody reports, nothing on record":   {"", nil, checksum.Unreported},
		"nobody reports any more":             {value, nil, checksum.Unreported},
		"nobody reports, the key is lost":     {lost, nil, checksum.Unreported},
		"nobody reports, junk on record":      {"junk", nil, checksum.Unreported},
		"the first report":                    {"", versions("a", "1"), checksum.Unrecorded},
		"reported again":                      {value, versions("a", "1"), checksum.True},
		"another version":                     {value, versions("a", "2"), checksum.Untrue},
		"one object less":                     {value, versions(), checksum.Untrue},
		"reported, the key is lost":           {lost, versions("a", "1"), checksum.Unverifiable},
		"absent on record, which we never do": {checksum.Absent, versions("a", "1"), checksum.Untrue},
	} {
		if got := ring.Assess(namespace, s, c.record, c.record != "", c.content); got != c.want {
			t.Errorf("%s: %v, want %v", about, got, c.want)
		}
	}
}

// A workload that uses a ConfigMap and a class.
func TestDecideWithAClass(t *testing.T) {
	both := append([]checksum.Reference{envFrom(message)}, ofVault...)
	digest := func(source checksum.Source, content *checksum.Content) string {
		for _, s := range checksum.Selections(both, provided()) {
			if s.Source == source {
				return ring.Digest(namespace, s, content)
			}
		}
		return ""
	}
	one, two := digest(vault, versions("a", "1")), digest(vault, versions("a", "2"))
	hello, bye := digest(message, text("k", "hello")), digest(message, text("k", "bye"))
	stamped := func(pairs ...string) checksum.Records {
		stamps := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			stamps[pairs[i]+".configstamp.dev/"+map[string]string{"configmap": message.Name, "secretproviderclass": vault.Name}[pairs[i]]] = pairs[i+1]
		}
		return checksum.Records{Stamps: stamps}
	}
	based := func(records checksum.Records, value string) checksum.Records {
		records.Baseline = map[checksum.Source]string{vault: value}
		return records
	}
	create := admissionCase{Create: true, Policy: provided()}
	edit := func(held checksum.Records) admissionCase {
		return admissionCase{Policy: provided(), TemplateChanged: true, Held: held, Sent: held}
	}
	asked := func(by checksum.Asker, held checksum.Records) admissionCase {
		return admissionCase{Policy: provided(), Asker: by, Held: held, Sent: held}
	}
	adopting := func(a admissionCase) admissionCase {
		a.Policy.RestartUnstamped = true
		return a
	}
	for about, c := range map[string]struct {
		admission admissionCase
		message   string
		class     *checksum.Content
		want      reason.Reason
		records   checksum.Records
	}{
		"created before any pod: the rest is stamped":               {create, "hello", nil, reason.Stamped, stamped("configmap", hello)},
		"created beside pods that report":                           {create, "hello", versions("a", "1"), reason.Stamped, stamped("configmap", hello, "secretproviderclass", one)},
		"the first report is recorded":                              {asked(checksum.Recorder, stamped("configmap", hello)), "hello", versions("a", "1"), reason.Recorded, based(stamped("configmap", hello), one)},
		"and rolls nothing":                                         {asked(checksum.Roller, stamped("configmap", hello)), "hello", versions("a", "1"), reason.Recorded, based(stamped("configmap", hello), one)},
		"nor for who adopts by a restart":                           {adopting(asked(checksum.Roller, checksum.Records{})), "", versions("a", "1"), reason.Recorded, based(checksum.Records{}, one)},
		"another version rolls":                                     {asked(checksum.Roller, based(stamped("configmap", hello), one)), "hello", versions("a", "2"), reason.Stamped, stamped("configmap", hello, "secretproviderclass", two)},
		"and is no matter of a recording":                           {asked(checksum.Recorder, based(stamped("configmap", hello), one)), "hello", versions("a", "2"), reason.Kept, based(stamped("configmap", hello), one)},
		"the same version does nothing":                             {asked(checksum.Roller, stamped("configmap", hello, "secretproviderclass", one)), "hello", versions("a", "1"), reason.Kept, stamped("configmap", hello, "secretproviderclass", one)},
		"nobody reports any more: nothing":                          {asked(checksum.Roller, stamped("configmap", hello, "secretproviderclass", one)), "hello", nil, reason.Kept, stamped("configmap", hello, "secretproviderclass", one)},
		"nobody reports, the ConfigMap changed: the record is kept": {asked(checksum.Roller, based(stamped("configmap", hello), one)), "bye", nil, reason.Stamped, stamped("configmap", bye, "secretproviderclass", one)},
		"nobody reports, another image: the record is kept":         {edit(based(stamped("configmap", hello), one)), "hello", nil, reason.Stamped, stamped("configmap", hello, "secretproviderclass", one)},
		"nobody reports, another image, nothing on record":          {edit(stamped("configmap", hello)), "hello", nil, reason.Stamped, stamped("configmap", hello)},
		"nobody reports, what is on record cannot be read":          {edit(stamped("configmap", hello, "secretproviderclass", "junk")), "hello", nil, reason.Stamped, stamped("configmap", hello, "secretproviderclass", "junk")},
	} {
		t.Run(about, func(t *testing.T) {
			a := c.admission
			a.Namespace, a.Fresh = namespace, true
			references := both
			if c.message == "" { // the class is all that it uses
				references = ofVault
			}
			a.Selections = checksum.Selections(references, a.Policy)
			a.Content = func(source checksum.Source) *checksum.Content {
				if source == vault {
					return c.class
				}
				return text("k", c.message)
			}
			got := decide(ring, a)
			if got.Outcome != c.want || !got.Records.Equal(c.records) || len(got.Findings) > 0 {
				t.Errorf("%s, want %s; findings %v; records (-want +got):\n%s", got.Outcome, c.want, got.Findings, cmp.Diff(c.records, got.Records))
			}
		})
	}
}

// With the flag off a class does not even hold anything.
func TestAClassCountsWhereThePolicySaysSo(t *testing.T) {
	for about, c := range map[string]struct {
		set     func(*checksum.Policy)
		counted bool
	}{
		"by default":             {func(*checksum.Policy) {}, false},
		"also, without the flag": {func(p *checksum.Policy) { *p = p.With(onWorkload("also", vault.String())) }, false},
		"only, without the flag": {func(p *checksum.Policy) { *p = p.With(onWorkload("only", vault.String())) }, false},
		"with the flag":          {func(p *checksum.Policy) { p.SecretProviderClasses = true }, true},
		"ignored": {func(p *checksum.Policy) {
			p.SecretProviderClasses = true
			*p = p.With(onWorkload("ignore", "secretproviderclass/web-*"))
		}, false},
		"not at startup": {func(p *checksum.Policy) {
			p.SecretProviderClasses = true
			*p = p.With(onWorkload("restart-on", "startup"))
		}, false},
	} {
		policy := checksum.DefaultPolicy()
		c.set(&policy)
		if len(policy.Faults) > 0 {
			t.Errorf("%s: %v", about, policy.Faults)
		}
		if selections := checksum.Selections(ofVault, policy); (len(selections) > 0) != c.counted {
			t.Errorf("%s: %v", about, selections)
		}
	}
}

func TestReloaderOfClasses(t *testing.T) {
	const domain = "reloader.stakater.com/"
	other := checksum.Source{Kind: checksum.SecretProviderClass, Name: "other-vault"}
	references := append([]checksum.Reference{envFrom(message), envFrom(password)}, ofVault...)
	for about, c := range map[string]struct {
		annotations map[string]string
		counted     string
	}{
		"auto":                {map[string]string{domain + "auto": "true"}, message.String() + " " + password.String() + " " + vault.String()},
		"classes alone":       {map[string]string{"secretproviderclass." + domain + "auto": "true"}, vault.String()},
		"named":               {map[string]string{"secretproviderclass." + domain + "reload": "web-vault"}, vault.String()},
		"by an expression":    {map[string]string{"secretproviderclass." + domain + "reload": ".*-vault"}, other.String() + " " + vault.String()},
		"excluded":            {map[string]string{domain + "auto": "true", "secretproviderclasses.exclude." + domain + "reload": "web-vault"}, message.String() + " " + password.String()},
		"a ConfigMap alone":   {map[string]string{"configmap." + domain + "auto": "true"}, message.String()},
		"searched and marked": {map[string]string{domain + "search": "true"}, ""},
	} {
		existing := func(kind checksum.Kind) []string {
			return map[checksum.Kind][]string{checksum.SecretProviderClass: {other.Name, vault.Name}}[kind]
		}
		foreign := checksum.Translate(bothDialects, namespace, c.annotations, nil)
		policy := provided().Translated(foreign, existing)
		decision := decide(ring, admissionCase{
			Namespace: namespace, Create: true, Fresh: true, Policy: policy, Selections: checksum.Selections(references, policy),
			Content: func(checksum.Source) *checksum.Content { return versions("a", "1") },
		})
		var counted []string
		for _, stamp := range slices.Sorted(maps.Keys(decision.Records.Stamps)) {
			counted = append(counted, strings.Replace(stamp, ".configstamp.dev/", "/", 1))
		}
		if got := strings.Join(counted, " "); got != c.counted || !foreign.OptsIn() {
			t.Errorf("%s: %q counts, want %q; opts in: %v", about, got, c.counted, foreign.OptsIn())
		}
		off := checksum.DefaultPolicy().Translated(foreign, existing)
		for _, s := range checksum.Selections(references, off) {
			if s.Source.Kind == checksum.SecretProviderClass {
				t.Errorf("%s: %v is selected with the flag off", about, s.Source)
			}
		}
	}
}
