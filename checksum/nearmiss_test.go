package checksum_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
)

// Where each is written, and what its writer reads; "": nothing is said.
func TestNearMisses(t *testing.T) {
	const label, annotation = true, false
	for _, c := range []struct {
		at         checksum.Origin
		label      bool
		key, value string
		says       string
	}{
		// Misspelt.
		{checksum.OfNamespace, label, "configstamp.dev/injcet", "enabled", "the label configstamp.dev/injcet is not a setting of a Namespace; it has no effect; did you mean the label configstamp.dev/inject?"},
		{checksum.OfNamespace, annotation, "configstamp.dev/pasue", "true", "the annotation configstamp.dev/pasue is not a setting of a Namespace; it has no effect; did you mean the annotation configstamp.dev/pause?"},
		{checksum.OfWorkload, label, "configstamp.io/inject", "enabled", "the label configstamp.io/inject is not a setting of a workload; it has no effect; did you mean the label configstamp.dev/inject?"},
		{checksum.OfWorkload, annotation, "configstmap.dev/pause", "true", "; did you mean the annotation configstamp.dev/pause?"},
		{checksum.OfWorkload, annotation, "configstamp/mode", "observe", "; did you mean the annotation configstamp.dev/mode?"},
		{checksum.OfWorkload, annotation, "configstamp.dev/restartOn", "all", "; did you mean the annotation configstamp.dev/restart-on?"},
		{checksum.OfWorkload, annotation, "configstamp.dev/min", "1h", "; did you mean the annotation configstamp.dev/min-interval?"},
		{checksum.OfWorkload, annotation, "configstamp.dev/resum", "x", "; did you mean the annotation configstamp.dev/resume on a ConfigMap or Secret?"},
		{checksum.OfSource, annotation, "configstamp.dev/ignored-keys", "x", "is not a setting of a ConfigMap or Secret; it has no effect; did you mean the annotation configstamp.dev/ignore-keys?"},
		{checksum.OfSource, annotation, "configstamp.dev/installations", "x", "; did you mean the annotation configstamp.dev/installation on a Namespace?"},
		{checksum.OfTemplate, label, "configstamp.dev/Inject", "enabled", "; did you mean the label configstamp.dev/inject on a workload or its Namespace?"},
		{checksum.OfWorkload, annotation, "configstamp.dev/rollback-on-failure", "x", "the annotation configstamp.dev/rollback-on-failure is not a setting of a workload; it has no effect"},

		// In the wrong place.
		{checksum.OfNamespace, annotation, "configstamp.dev/inject", "enabled", "the annotation configstamp.dev/inject has no effect; write it as a label"},
		{checksum.OfWorkload, annotation, "configstamp.dev/inject", "enabled", "the annotation configstamp.dev/inject has no effect; write it as a label"},
		{checksum.OfWorkload, label, "configstamp.dev/mode", "observe", "the label configstamp.dev/mode has no effect; write it as an annotation"},
		{checksum.OfTemplate, label, "configstamp.dev/inject", "enabled", "the label configstamp.dev/inject has no effect on a pod template; write it on the workload's own metadata as a label"},
		{checksum.OfTemplate, annotation, "configstamp.dev/pause", "true", "the annotation configstamp.dev/pause has no effect on a pod template; write it on the workload's own metadata as an annotation"},
		{checksum.OfSource, annotation, "configstamp.dev/pause", "true", "the annotation configstamp.dev/pause has no effect on a ConfigMap or Secret; write it on a workload or its Namespace"},
		{checksum.OfSource, label, "configstamp.dev/inject", "disabled", "the label configstamp.dev/inject has no effect on a ConfigMap or Secret; write it on a workload or its Namespace"},
		{checksum.OfWorkload, annotation, "configstamp.dev/resume", "x", "the annotation configstamp.dev/resume has no effect on a workload; write it on a ConfigMap or Secret"},
		{checksum.OfWorkload, annotation, "configstamp.dev/ignore-keys", "x", "has no effect on a workload; write it on a ConfigMap or Secret"},
		{checksum.OfWorkload, annotation, "configstamp.dev/installation", "x", "has no effect on a workload; write it on a Namespace"},
		{checksum.OfNamespace, annotation, "configstamp.dev/resume", "x", "has no effect on a Namespace; write it on a ConfigMap or Secret"},

		// With a value that means nothing.
		{checksum.OfNamespace, label, "configstamp.dev/inject", "enable", `the label configstamp.dev/inject: "enable" opts nothing in: want enabled; did you mean enabled?`},
		{checksum.OfNamespace, label, "configstamp.dev/inject", "true", `"true" opts nothing in: want enabled; did you mean enabled?`},
		{checksum.OfNamespace, label, "configstamp.dev/inject", "Enabled", "; did you mean enabled?"},
		{checksum.OfNamespace, label, "configstamp.dev/inject", "", `"" opts nothing in: want enabled`},
		{checksum.OfNamespace, label, "configstamp.dev/inject", "no", `"no" opts nothing in: want enabled`},
		{checksum.OfWorkload, label, "configstamp.dev/inject", "disable", `the label configstamp.dev/inject: "disable" opts neither in nor out: want enabled or disabled; did you mean disabled?`},
		{checksum.OfWorkload, label, "configstamp.dev/inject", "false", "; did you mean disabled?"},
		{checksum.OfWorkload, label, "configstamp.dev/inject", "on", "; did you mean enabled?"},
		{checksum.OfWorkload, label, "configstamp.dev/inject", "perhaps", `"perhaps" opts neither in nor out: want enabled or disabled`},

		// As it should be, or nothing of ours.
		{checksum.OfNamespace, label, "configstamp.dev/inject", "enabled", ""},
		{checksum.OfNamespace, label, "configstamp.dev/inject", "disabled", ""},
		{checksum.OfWorkload, label, "configstamp.dev/inject", "disabled", ""},
		{checksum.OfNamespace, annotation, "configstamp.dev/installation", "x", ""},
		{checksum.OfSource, annotation, "configstamp.dev/ignore", "maybe", ""}, // that is a Fault
		{checksum.OfTemplate, annotation, checksum.PinsAnnotation, "{}", ""},
		{checksum.OfTemplate, annotation, checksum.StampKey(message), "v1:absent", ""},
		{checksum.OfWorkload, annotation, "configmap.reloader.stakater.com/reload", "a", ""},
		{checksum.OfWorkload, annotation, "configstamp.teams.example.com/pause", "a", ""},
		{checksum.OfWorkload, annotation, "configstamps.io/team", "a", ""},
		{checksum.OfWorkload, annotation, "example.com/pause", "a", ""},
		{checksum.OfWorkload, label, "app.kubernetes.io/name", "inject", ""},
		{checksum.OfWorkload, label, "kubernetes.io/pause", "inject", ""},
		{checksum.OfWorkload, label, "inject", "enabled", ""},
	} {
		written := map[string]string{c.key: c.value}
		found := checksum.NearMisses(c.at, nil, written)
		if c.label {
			found = checksum.NearMisses(c.at, written, nil)
		}
		switch {
		case c.says == "" && len(found) > 0, c.says != "" && len(found) != 1:
			t.Errorf("%s on a %s: found %v", c.key, c.at, found)
		case c.says != "" && (!strings.HasSuffix(found[0].String(), c.says) || found[0].Warning() != "configstamp: "+found[0].String()):
			t.Errorf("%s on a %s: %q, want %q", c.key, c.at, found[0].Warning(), c.says)
		}
	}
}

// Every setting is known where the table says that it stands, and nowhere else.
func TestNearMisses_ByTheTableOfSettings(t *testing.T) {
	places := map[string]checksum.Origin{"workload": checksum.OfWorkload, "Namespace": checksum.OfNamespace, "source": checksum.OfSource}
	for _, setting := range checksum.Settings() {
		on := strings.Split(setting.On, ", ")
		for name, at := range places {
			found := checksum.NearMisses(at, nil, map[string]string{setting.Key(): "x"})
			if slices.Contains(on, name) != (len(found) == 0) {
				t.Errorf("%s stands on %s; on a %s: %v", setting.Key(), setting.On, at, found)
			}
		}
		typo := "configstamp.dev/" + setting.Name() + "x"
		found := checksum.NearMisses(checksum.OfTemplate, nil, map[string]string{typo: "x"})
		if len(found) != 1 || !strings.Contains(found[0].String(), "did you mean the annotation "+setting.Key()+" on ") {
			t.Errorf("%s: %v", typo, found)
		}
	}
}

func TestNearMisses_WhatWeWriteIsNone(t *testing.T) {
	for _, key := range checksum.OursOnWorkload() {
		if found := checksum.NearMisses(checksum.OfWorkload, nil, map[string]string{key: "{}"}); len(found) > 0 {
			t.Errorf("%s: %v", key, found)
		}
	}
}

func TestNamesThatNothingReferences(t *testing.T) {
	references := []checksum.Reference{envFrom(message), envFrom(password)}
	reloader := checksum.Translate([]checksum.Dialect{checksum.Reloader}, namespace, map[string]string{"configmap.reloader.stakater.com/reload": "by-reloader"}, nil)
	for only, want := range map[string]string{
		"configmap/web-message":                 "",
		"configmap/typo":                        "configstamp.dev/only names configmap/typo, which nothing here references; correct the name, or remove it",
		"configmap/web-mesage,secret/*":         "configstamp.dev/only names configmap/web-mesage, which nothing here references; did you mean configmap/web-message?",
		"secret/none-*":                         "", // a glob may well match nothing yet
		"configmap/routes":                      "", // also names it
		"configmap/by-reloader":                 "",
		"configmap/":                            "", // it cannot be read, which is told of
		"secret/web-message,secret/db-password": "configstamp.dev/only names secret/web-message, which nothing here references; correct the name, or remove it",
	} {
		var by *checksum.Referenced
		by = by.With(references[:1], nil).With(references[1:], reloader)
		found := by.Lacks(map[string]string{"configstamp.dev/only": only, "configstamp.dev/also": "configmap/routes"})
		said := ""
		for _, finding := range found {
			said += finding.String()
		}
		if said != want {
			t.Errorf("%s: %q, want %q", only, said, want)
		}
	}
	if found := (&checksum.Referenced{}).Lacks(nil); found != nil {
		t.Errorf("without a setting: %v", found)
	}
}

func TestNamespacesTellOfWhatStandsThere(t *testing.T) {
	n := checksum.NamespaceOf(&metav1.ObjectMeta{
		Labels:      map[string]string{"configstamp.dev/inject": "true", "kubernetes.io/metadata.name": "shop"},
		Annotations: map[string]string{"configstamp.dev/mode": "dry-run", "configstamp.dev/pasue": "true", "example.com/pause": "secret"},
	})
	want := []checksum.Reason{checksum.NoSetting, checksum.NoValue, checksum.UnreadableSetting}
	var got []checksum.Reason
	for _, finding := range n.Findings {
		got = append(got, finding.Reason)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", n.Findings, want)
	}
	if plain := checksum.NamespaceOf(&metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}); plain.Findings != nil {
		t.Errorf("%v", plain.Findings)
	}
}

// The webhook configuration selects by labels alone, so that these decide who is told by
// an admission, and who by an event.
func TestSelected(t *testing.T) {
	for about, c := range map[string]struct {
		candidate checksum.Candidate
		optedIn   bool
		want      bool
	}{
		"nothing is opted in":                   {checksum.Candidate{}, false, false},
		"a value that means nothing":            {checksum.Candidate{Inject: "true"}, false, false},
		"the workload is":                       {checksum.Candidate{Inject: "enabled"}, false, true},
		"its Namespace is":                      {checksum.Candidate{}, true, true},
		"it seems to be opted out":              {checksum.Candidate{Inject: "disable"}, true, true},
		"it is opted out":                       {checksum.Candidate{Inject: "disabled"}, true, false},
		"its Namespace is excluded":             {checksum.Candidate{Excluded: true}, true, false},
		"another product's annotation opts in":  {checksum.Candidate{Foreign: &checksum.Foreign{Marked: true}}, false, true},
		"another product's annotation does not": {checksum.Candidate{Foreign: &checksum.Foreign{}}, false, false},
	} {
		if got := checksum.Selected(c.candidate, checksum.Namespace{OptedIn: c.optedIn}); got != c.want {
			t.Errorf("%s: %v", about, got)
		}
	}
}

// The platform makes these a moment after the namespace: nobody has to be told, and no
// roll follows.
func TestWhatThePlatformMakesIsNeitherMissingNorAChange(t *testing.T) {
	root := checksum.Source{Kind: checksum.ConfigMap, Name: "kube-root-ca.crt"}
	there := checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"ca.crt": "x"}})
	mounted := checksum.Reference{Source: root, Use: checksum.Live, All: true}
	for about, c := range map[string]struct {
		policy     checksum.Policy
		references []checksum.Reference
	}{
		"mounted":                       {checksum.DefaultPolicy(root), []checksum.Reference{mounted}},
		"mounted, and not ignored":      {checksum.DefaultPolicy(), []checksum.Reference{mounted}},
		"named in also":                 {checksum.DefaultPolicy(root).With(onWorkload("also", root.String())), nil},
		"mounted, and named in also":    {checksum.DefaultPolicy(root).With(onWorkload("also", root.String())), []checksum.Reference{mounted}},
		"of an optional reference, too": {checksum.DefaultPolicy(), []checksum.Reference{{Source: root, Use: checksum.Live, All: true, Optional: true}}},
	} {
		selections := checksum.Selections(c.references, c.policy)
		made := checksum.Decide(ring, checksum.Admission{Namespace: namespace, Create: true, Fresh: true, Policy: c.policy, Selections: selections,
			Content: func(checksum.Source) *checksum.Content { return nil }})
		if len(made.Findings) > 0 || len(made.Records.Stamps) > 0 {
			t.Errorf("%s: at its creation %v, %v", about, made.Findings, made.Records)
		}
		before := ring.Review(namespace, &c.policy, selections, made.Records, func(checksum.Source) *checksum.Content { return nil })
		after := ring.Review(namespace, &c.policy, selections, made.Records, func(checksum.Source) *checksum.Content { return there })
		if len(before.Untrue)+len(before.ToRecord)+len(after.Untrue) > 0 {
			t.Errorf("%s: before it comes %+v, then %+v", about, before, after)
		}
	}
}

// What is said quotes no annotation, and of labels our own alone.
func FuzzNearMisses(f *testing.F) {
	for _, key := range []string{"configstamp.dev/injcet", "configstamp.io/pause", "configstmap.dev/", "configstamp/é", "/", "configstamp.dev/inject", "app.kubernetes.io/name"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		const secret = "correct horse battery staple"
		for _, at := range []checksum.Origin{checksum.OfWorkload, checksum.OfNamespace, checksum.OfSource, checksum.OfTemplate} {
			written := map[string]string{key: secret}
			found := checksum.NearMisses(at, nil, written)
			if key != checksum.InjectLabel {
				found = append(found, checksum.NearMisses(at, written, nil)...)
			}
			for _, finding := range found {
				if strings.Contains(finding.String(), secret) || !strings.Contains(finding.String(), key) {
					t.Errorf("%q on a %s: %s", key, at, finding)
				}
			}
		}
	})
}
