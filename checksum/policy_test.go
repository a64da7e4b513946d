package checksum_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

func level(origin checksum.Origin, pairs ...string) checksum.Level {
	annotations := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		annotations["configstamp.dev/"+pairs[i]] = pairs[i+1]
	}
	return checksum.Level{Origin: origin, Annotations: annotations}
}

func onWorkload(pairs ...string) checksum.Level { return level(checksum.OfWorkload, pairs...) }

func onNamespace(pairs ...string) checksum.Level { return level(checksum.OfNamespace, pairs...) }

func TestTheNearestSettingCountsAlone(t *testing.T) {
	policy := checksum.DefaultPolicy().
		With(level(checksum.OfFlag, "mode", "observe", "restart-on", "startup", "pin", "true")).
		With(onWorkload("mode", "restart", "window", "10:00-11:00 UTC"), onNamespace("mode", "Observe", "restart-on", "all", "min-interval", "30m", "window", "never", "soak", "1h"))
	if policy.Observe || policy.Soak != (checksum.Soak{For: time.Hour, Given: true}) || policy.MinInterval != 30*time.Minute || !policy.Pin || len(policy.Uses) != 2 || len(policy.Windows) != 1 || len(policy.Faults) > 0 {
		t.Errorf("%+v", policy)
	}
	for setting, want := range map[string]checksum.Origin{"mode": checksum.OfWorkload, "min-interval": checksum.OfNamespace, "restart-on": checksum.OfNamespace, "soak": checksum.OfNamespace, "pin": checksum.OfFlag, "window": checksum.OfWorkload} {
		if origin, set := policy.OriginOf(setting); origin != want || !set {
			t.Errorf("%s stands on %s, want %s", setting, origin, want)
		}
	}
	if origin, set := policy.OriginOf("pause"); set {
		t.Errorf("pause stands on %s", origin)
	}
}

func TestWhatCannotBeReadIsAFaultAndCountsAsUnset(t *testing.T) {
	for setting, values := range map[string]map[string]string{ // value: what the error names
		"only":         {"": "the list is empty", "web": `"web"`, "pod/x": `"pod/x"`, "configmap/A": `"A"`, "configmap/[": `"["`, "configmap/a b*": "characters", "configmap/a_*": "characters", ",": "the list is empty", "configmap/": `""`},
		"ignore":       {"true": `"true"`, "secret/": `""`},
		"also":         {"configmap/web-*": "web-*", "": "the list is empty"},
		"restart-on":   {"live": "startup", "Startup": "startup"},
		"mode":         {"observer": "observe", "": "observe"},
		"pause":        {"yes": "true", "1": "true", "2027-01-02": "2027-01-02T", "TRUE": "true"},
		"window":       {"Mon-Fry 22:00-04:00 Europe/Berlin": `"Fry"`, "22:00-04:00": "zone", "": "no time", "Mon 22:00 UTC": `"22:00" is not a span`, "Mon 22:00-04:00": `a time zone is missing after "22:00-04:00"`, "Mon 22:00-04:00 +01:00": `"+01:00" is not a time zone`, "Mon Europe/Berlin": "days, times and zone", "Mon-Fri 22-4": "days, times and zone", "Mon 24:00-04:00 UTC": "span", "Mon 1:00-2:00 UTC": `"1:00"`, "Mon 22:00-25:00 UTC": `"25:00"`, "Mon 22:00-22:00 UTC": "span", "Mon 22:00-23:00 Berlin": `"Berlin"`, "Mon 22:00-23:00 Local": `"Local"`, "Mon-Tue-Wed 22:00-23:00 UTC": `"Tue-Wed"`, "Mon 22:00-23:00-24:00 UTC": `"23:00-24:00"`},
		"min-interval": {"30": "30m", "-5m": "30m", "soon": "30m"},
		"soak":         {"30": "30s", "-5m": "30s", "1h1s": "an hour at most", "": "30s"},
		"adopt":        {"yes": "baseline"},
	} {
		for value, named := range values {
			t.Run(setting+"="+value, func(t *testing.T) {
				policy := checksum.DefaultPolicy().With(onWorkload(setting, value))
				if len(policy.Faults) != 1 {
					t.Fatalf("faults %v, want one", policy.Faults)
				}
				if text := policy.Faults[0].Error(); !strings.HasPrefix(text, "configstamp.dev/"+setting+`: "`) || !strings.Contains(text, named) {
					t.Errorf("%q does not name %s", text, named)
				}
				if diff := cmp.Diff(checksum.DefaultPolicy().Uses, policy.Uses); diff != "" || policy.Pause.On || policy.Observe || len(policy.Only)+len(policy.Ignore)+len(policy.Also)+len(policy.Windows) > 0 || policy.Soak.Given {
					t.Errorf("something was set: %+v", policy)
				}
			})
		}
	}
	fault := checksum.DefaultPolicy().With(onWorkload(), onNamespace("mode", "x")).Faults[0]
	if text := fault.Error(); !strings.HasPrefix(text, `configstamp.dev/mode on the Namespace: "x": want`) {
		t.Errorf("%q", text)
	}
}

func TestAListHasItsLimits(t *testing.T) {
	long := strings.Repeat("a", 252)
	globs := func(n int, prefix string) string { return numbered(n, ",", prefix+"%03d*"+long[:246]) }
	for about, c := range map[string]struct{ setting, list, want string }{
		"256 globs":              {"only", numbered(256, ",", "secret/db-%d-*"), ""},
		"257 globs":              {"only", numbered(257, ",", "secret/db-%d-*"), "no more than 256"},
		"257 to ignore":          {"ignore", numbered(257, ",", "secret/db-%d-*"), "no more than 256"},
		"257 sources":            {"also", numbered(257, ",", "secret/db-%d"), "no more than 256"},
		"257 windows":            {"window", strings.Repeat("00:00-24:00 UTC;", 257), "no more than 256"},
		"a glob of 253":          {"ignore", "configmap/???" + long[:250], ""},
		"a glob of 254":          {"ignore", "configmap/*a" + long, "no more than 253"},
		"256 keys":               {"ignore-keys", numbered(256, ",", "k%d-*"), ""},
		"257 keys":               {"ignore-keys", numbered(257, ",", "k%d-*"), "no more than 256"},
		"16 globs of 250":        {"only", globs(16, "secret/"), ""},
		"17 globs of 250":        {"only", globs(17, "secret/"), "no more than 4000 characters in all"},
		"16 keys of 250":         {"ignore-keys", globs(16, ""), ""},
		"17 keys of 250":         {"ignore-keys", globs(17, ""), "no more than 4000 characters in all"},
		"20 names of 250":        {"only", strings.ReplaceAll(globs(20, "secret/"), "*", "x"), ""},
		"a glob of 254 for keys": {"ignore-keys", "*a" + long, "no more than 253"},
	} {
		t.Run(about, func(t *testing.T) {
			level := onWorkload(c.setting, c.list)
			faults := checksum.DefaultPolicy().With(level).Faults
			if c.setting == "ignore-keys" {
				faults = checksum.SourcePolicyOf(level.Annotations).Faults
			}
			if (len(faults) > 0) != (c.want != "") || len(faults) > 0 && (!strings.Contains(faults[0].Error(), c.want) || len(faults[0].Error()) > 300) {
				t.Errorf("%q: %v", c.want, faults)
			}
		})
	}
}

func TestWhatCounts(t *testing.T) {
	routes := checksum.Source{Kind: checksum.ConfigMap, Name: "routes"}
	platform := checksum.Source{Kind: checksum.ConfigMap, Name: "kube-root-ca.crt"}
	references := []checksum.Reference{envFrom(message), envFrom(password), mounted(platform)}
	for about, c := range map[string]struct {
		settings []string
		want     string
	}{
		"by default":                        {nil, "configmap/web-message secret/db-password"},
		"only one":                          {[]string{"only", "configmap/web-message"}, "configmap/web-message"},
		"a sign beside a dot":               {[]string{"only", "secret/*.db-password,secret/db-*.example.com,secret/app.*-config,secret/*.*,configmap/*-*"}, "configmap/web-message"},
		"only by a glob, blanks around":     {[]string{"only", " secret/db-* , configmap/none "}, "secret/db-password"},
		"all but":                           {[]string{"ignore", "secret/*"}, "configmap/web-message"},
		"ignore before only":                {[]string{"ignore", "secret/*", "only", "secret/db-password"}, ""},
		"also what no template names":       {[]string{"also", "configmap/routes"}, "configmap/routes configmap/web-message secret/db-password"},
		"also beside only":                  {[]string{"also", "configmap/routes", "only", "secret/*"}, "configmap/routes secret/db-password"},
		"ignore before also":                {[]string{"also", "configmap/routes", "ignore", "configmap/routes"}, "configmap/web-message secret/db-password"},
		"also what the platform brings":     {[]string{"also", "configmap/kube-root-ca.crt"}, "configmap/kube-root-ca.crt configmap/web-message secret/db-password"},
		"only is no order for the platform": {[]string{"only", "configmap/*"}, "configmap/web-message"},
	} {
		t.Run(about, func(t *testing.T) {
			policy := checksum.DefaultPolicy(platform).With(onWorkload(c.settings...))
			var counted []string
			for _, s := range checksum.Selections(references, policy) {
				if !s.HoldOnly {
					counted = append(counted, s.Source.String())
				}
				if s.Source == routes && (!s.All || s.Required) {
					t.Errorf("%+v", s)
				}
			}
			if got := strings.Join(counted, " "); got != c.want {
				t.Errorf("%q counts, want %q", got, c.want)
			}
		})
	}
}

// described is a ConfigMap with annotations.
func described(data map[string]string, pairs ...string) *checksum.Content {
	return checksum.ContentOfConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: onWorkload(pairs...).Annotations}, Data: data})
}

func TestIgnoredKeysDoNotCountAndNewOnesDo(t *testing.T) {
	const globs = "build-*, stamp"
	selection := selected(t, checksum.DefaultPolicy(), envFrom(message))
	before := described(map[string]string{"a": "1", "build-date": "1", "stamp": "1"}, "ignore-keys", globs)
	record := ring.Digest(namespace, selection, before)
	if strings.Contains(record, ":all:") {
		t.Errorf("%s says that all keys count", record)
	}
	for about, c := range map[string]struct {
		now  *checksum.Content
		want checksum.Verdict
	}{
		"an ignored key changes":       {described(map[string]string{"a": "1", "build-date": "2", "build-host": "x"}, "ignore-keys", globs), checksum.True},
		"the order of globs changes":   {described(map[string]string{"a": "1"}, "ignore-keys", "stamp,build-*"), checksum.True},
		"a key that counts changes":    {described(map[string]string{"a": "2"}, "ignore-keys", globs), checksum.Untrue},
		"a key is added":               {described(map[string]string{"a": "1", "b": "1"}, "ignore-keys", globs), checksum.Untrue},
		"the source is ignored":        {described(map[string]string{"a": "2"}, "ignore", "true", "ignore-keys", globs), checksum.True},
		"other globs":                  {described(map[string]string{"a": "1"}, "ignore-keys", "x"), checksum.Unverifiable},
		"ignore=false changes nothing": {described(map[string]string{"a": "1"}, "ignore", "false", "ignore-keys", globs), checksum.True},
	} {
		if got := ring.Assess(namespace, selection, record, true, c.now); got != c.want {
			t.Errorf("%s: %s, want %s", about, got, c.want)
		}
	}
	// A record of all keys is compared as such when globs come, and restarts by content alone.
	whole := ring.Digest(namespace, selection, text("a", "1", "stamp", "1"))
	for about, c := range map[string]struct {
		now  *checksum.Content
		want checksum.Verdict
	}{
		"globs come":                {described(map[string]string{"a": "1", "stamp": "1"}, "ignore-keys", globs), checksum.Reselected},
		"globs come after a change": {described(map[string]string{"a": "2", "stamp": "1"}, "ignore-keys", globs), checksum.Untrue},
	} {
		if got := ring.Assess(namespace, selection, whole, true, c.now); got != c.want {
			t.Errorf("%s: %s, want %s", about, got, c.want)
		}
	}
	keyed := selected(t, checksum.DefaultPolicy(), env(message, "a"), optional(env(message, "stamp")))
	record = ring.Digest(namespace, keyed, text("a", "1", "stamp", "1"))
	if got := ring.Assess(namespace, keyed, record, true, described(map[string]string{"a": "1", "stamp": "1"}, "ignore-keys", globs)); got != checksum.Reselected {
		t.Errorf("named keys, globs come: %s", got)
	}
}

// decide has the rules look at one re-admission.
func rollingUnder(policy checksum.Policy, held checksum.Records, content *checksum.Content, references ...checksum.Reference) checksum.Decision {
	return decide(ring, admissionCase{
		Namespace: namespace, Held: held, Sent: held, Fresh: true, Asker: checksum.Roller, Policy: policy,
		Selections: checksum.Selections(references, policy), Content: func(checksum.Source) *checksum.Content { return content },
	})
}

func TestPoliciesThatHoldARoll(t *testing.T) {
	selection := selected(t, checksum.DefaultPolicy(), envFrom(message))
	held := checksum.Records{Stamps: map[string]string{checksum.StampKey(message): ring.Digest(namespace, selection, text("a", "1"))}}
	for about, c := range map[string]struct {
		policy  checksum.Policy
		content *checksum.Content
		want    reason.Reason
		says    string
	}{
		"nothing":                        {checksum.DefaultPolicy(), text("a", "2"), reason.Stamped, ""},
		"observe":                        {checksum.DefaultPolicy().With(onWorkload("mode", "observe")), text("a", "2"), reason.Observed, "observe"},
		"observe, nothing changed":       {checksum.DefaultPolicy().With(onWorkload("mode", "observe")), text("a", "1"), reason.Kept, ""},
		"a setting that nobody can read": {checksum.DefaultPolicy().With(onWorkload("pause", "maybe")), text("a", "2"), reason.OnHold, "configstamp.dev/pause"},
		"one of the source":              {checksum.DefaultPolicy(), described(map[string]string{"a": "2"}, "ignore", "maybe"), reason.OnHold, "configmap/web-message: configstamp.dev/ignore"},
		"a pause is the controller's":    {checksum.DefaultPolicy().With(onWorkload("pause", "true")), text("a", "2"), reason.Stamped, ""},
	} {
		t.Run(about, func(t *testing.T) {
			got := rollingUnder(c.policy, held, c.content, envFrom(message))
			if got.Outcome != c.want {
				t.Errorf("%s, want %s", got.Outcome, c.want)
			}
			if (c.want == reason.Stamped) == got.Records.Equal(held) {
				t.Errorf("records %v", got.Records)
			}
			said := ""
			for _, finding := range got.Findings {
				said += finding.Warning() + "\n"
			}
			if !strings.Contains(said, c.says) || (c.says == "" && said != "") {
				t.Errorf("said %q, want %q", said, c.says)
			}
		})
	}
}

func TestAtCreationEverythingIsStampedWhateverHolds(t *testing.T) {
	for _, setting := range [][]string{{"mode", "observe"}, {"window", "never"}, {"only", "x"}, {"pause", "true"}} {
		policy := checksum.DefaultPolicy().With(onWorkload(setting...))
		got := decide(ring, admissionCase{
			Namespace: namespace, Create: true, Fresh: true, Policy: policy, Selections: checksum.Selections([]checksum.Reference{envFrom(message)}, policy),
			Content: func(checksum.Source) *checksum.Content { return text("a", "1") },
		})
		if len(got.Records.Stamps) != 1 {
			t.Errorf("%s: %v", setting, got.Records)
		}
	}
}

func TestAdoptByRestart(t *testing.T) {
	policy := checksum.DefaultPolicy().With(onWorkload("adopt", "restart"))
	if got := rollingUnder(policy, checksum.Records{}, text("a", "1"), envFrom(message)); got.Outcome != reason.Stamped {
		t.Errorf("without any record: %s", got.Outcome)
	}
	// A source that a policy newly includes restarts nothing.
	selection := selected(t, checksum.DefaultPolicy(), envFrom(password))
	held := checksum.Records{Stamps: map[string]string{checksum.StampKey(password): ring.Digest(namespace, selection, text("a", "1"))}}
	if got := rollingUnder(policy, held, text("a", "1"), envFrom(message), envFrom(password)); got.Outcome != reason.Recorded {
		t.Errorf("with a record of another source: %s", got.Outcome)
	}
}

// A workload whose pods started with nothing that counts was not found without
// stamps: what counts later is recorded.
func TestAdoptByRestartOfWhatStartedWithNothing(t *testing.T) {
	startup := checksum.DefaultPolicy().With(onWorkload("adopt", "restart", "restart-on", "startup"))
	everything := checksum.DefaultPolicy().With(onWorkload("adopt", "restart"))
	for about, c := range map[string]struct {
		then      checksum.Policy
		content   *checksum.Content
		reference checksum.Reference
	}{
		"before its source":           {everything, nil, envFrom(message)},
		"with uses that do not count": {startup, text("a", "1"), mounted(message, "a")},
	} {
		for _, create := range []bool{true, false} {
			a := admissionCase{
				Namespace: namespace, Create: create, TemplateChanged: !create, Fresh: true, Policy: c.then,
				Selections: checksum.Selections([]checksum.Reference{c.reference}, c.then), Content: func(checksum.Source) *checksum.Content { return c.content },
			}
			held := decide(ring, a).Records
			baseline, err := checksum.ParseBaseline(checksum.FormatBaseline(held.Baseline))
			if err != nil || len(held.Stamps) > 0 {
				t.Fatalf("%s: %v, %v", about, held.Stamps, err)
			}
			a.Create, a.TemplateChanged, a.Held, a.Sent = false, false, held, checksum.Records{}
			if got := decide(ring, a); got.Outcome != reason.Restored || !got.Records.Equal(held) {
				t.Errorf("%s: a client that takes the baseline away: %s, %v", about, got.Outcome, got.Records)
			}
			got := rollingUnder(everything, checksum.Records{Baseline: baseline}, text("a", "1"), c.reference)
			if _, recorded := got.Records.Of(message); got.Outcome != reason.Recorded || !recorded {
				t.Errorf("%s: %s, %v", about, got.Outcome, got.Records)
			}
			got = rollingUnder(everything, got.Records, text("a", "2"), c.reference)
			if got.Outcome != reason.Stamped || got.Records.Baseline != nil {
				t.Errorf("%s, and an edit: %s, %v", about, got.Outcome, got.Records)
			}
		}
	}
}

func TestHolds(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for about, c := range map[string]struct {
		settings []string
		current  time.Time
		setting  string // "": not held
		until    time.Time
	}{
		"nothing":                      {nil, now, "", time.Time{}},
		"paused":                       {[]string{"pause", "true", "window", "00:00-01:00 UTC"}, now, "pause", time.Time{}},
		"not paused":                   {[]string{"pause", "false"}, now, "", time.Time{}},
		"paused until later":           {[]string{"pause", "2026-11-20T13:00:00Z"}, now, "pause", now.Add(time.Hour)},
		"paused until before":          {[]string{"pause", "2026-11-20T12:00:00Z"}, now, "", time.Time{}},
		"the longer of two":            {[]string{"pause", "2026-11-20T13:00:00Z", "window", "14:00-15:00 UTC"}, now, "window", now.Add(2 * time.Hour)},
		"too soon":                     {[]string{"min-interval", "30m"}, now.Add(-10 * time.Minute), "min-interval", now.Add(20 * time.Minute)},
		"late enough":                  {[]string{"min-interval", "30m"}, now.Add(-30 * time.Minute), "", time.Time{}},
		"nothing is known of the last": {[]string{"min-interval", "30m"}, time.Time{}, "", time.Time{}},
	} {
		policy := checksum.DefaultPolicy().With(onWorkload(c.settings...))
		hold, held := policy.HoldAt(now, c.current)
		if held != (c.setting != "") || hold.Reason.String() != c.setting || !hold.Until.Equal(c.until) {
			t.Errorf("%s: %+v, %v", about, hold, held)
		}
	}
}

// What is wrong with a setting may quote what somebody has written, which may be very long.
func TestFaultsAreShort(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for setting, value := range map[string]string{"also": "configmap/" + long, "window": long + " 1:00-2:00 UTC", "only": long, "pause": long} {
		for _, fault := range checksum.DefaultPolicy().With(onWorkload(setting, value)).Faults {
			if text := fault.Error(); len(text) > 600 {
				t.Errorf("%s: %d bytes are told", setting, len(text))
			}
		}
	}
}
