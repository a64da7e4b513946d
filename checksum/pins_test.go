package checksum_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

const somePins = `{"configmap/web-extra":"web-extra-00112233445566778899 live","configmap/web-message":"web-message-3f2a91c07d5e8b4416aa startup,live"}`

func TestPinsAreReadAndWritten(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"{}", ""},
		{"null", ""},
		{somePins, somePins},
		{`{"configmap/web-message":"web-message-3f2a91c07d5e8b4416aa live,startup"}`, `{"configmap/web-message":"web-message-3f2a91c07d5e8b4416aa startup,live"}`},
		{`{"configmap/a":"a-00112233445566778899 live","configmap\/a":"a-99887766554433221100 startup"}`, `{"configmap/a":"a-99887766554433221100 startup"}`},
		// A newer version may pin Secrets, and other kinds.
		{`{"secret/db":"x y","feature/a":"b"}`, ""},
	} {
		if pins, err := checksum.ParsePins(c.text); err != nil || pins.String() != c.want {
			t.Errorf("%s is read as %s, %v", c.text, pins, err)
		}
	}
	for _, text := range []string{
		"{", "[]", "null x", `{"configmap/a":1}`, `{"configmap/web-message":""}`,
		`{"configmap/web-message":"web-message-3f2a91c07d5e8b4416aa"}`,
		`{"configmap/web-message":"web-message-3f2a91c07d5e8b4416aa "}`,
		`{"configmap/web-message":"web-message-3F2A91C07D5E8B4416AA startup"}`,
		`{"configmap/web-message":"web-message-3f2a91c07d5e8b4416aa node"}`,
		`{"configmap/web-message":"web-message-3f2a91c07d5e8b4416aa startup,node"}`,
		`{"configmap/web-message":"web-message-3f2a91c07d5e8b4416aa startup,startup"}`,
		`{"configmap/web-message":"web-message-3f2a91c07d5e8b4416aa startup live"}`,
		`{"configmap/web-message":"web-extra-3f2a91c07d5e8b4416aa startup"}`, // somebody else's
		`{"configmap/web-message":"db-password startup"}`,
	} {
		if pins, err := checksum.ParsePins(text); err == nil || pins != nil {
			t.Errorf("%s is read as %s", text, pins)
		} else if strings.Contains(err.Error(), "3f2a91c07d5e8b4416aa") {
			t.Errorf("the error has a digest: %v", err)
		}
	}
}

func TestDeclinedIsReadAndWritten(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "{}": "", "null": "", `{"configmap/a":" "}`: "", `{"configmap/a":" \u00a0\n"}`: "", `{"feature/a":"x"}`: "",
		`{"configmap/b":"v1:absent","configmap/a":"x  y"}`: `{"configmap/a":"x y","configmap/b":"v1:absent"}`,
		`{"configmap/a":"1 2 3 4"}`:                        `{"configmap/a":"1 2 3"}`,
	} {
		if declined, err := checksum.ParseDeclined(text); err != nil || declined.String() != want {
			t.Errorf("%s is read as %s, %v", text, declined, err)
		}
	}
	for _, text := range []string{"{", "[]", `{"configmap/a":["x"]}`} {
		if declined, err := checksum.ParseDeclined(text); err == nil || declined != nil {
			t.Errorf("%s is read as %s", text, declined)
		}
	}
}

// template is a Pod that reads web-message in some ways.
func template(mounts []corev1.VolumeMount, init []corev1.VolumeMount, env bool) []checksum.Reference {
	from := corev1.LocalObjectReference{Name: message.Name}
	spec := corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", VolumeMounts: init}},
		Containers:     []corev1.Container{{Name: "web", VolumeMounts: mounts}},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: from}}},
			{Name: "items", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: from, Items: []corev1.KeyToPath{{Key: "a", Path: "a"}}}}},
			{Name: "other", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: extra.Name}}}},
		},
	}
	if env {
		spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: from}}}
	}
	return checksum.References(&spec)
}

func TestWhatMayBePinned(t *testing.T) {
	config, items, sub := []corev1.VolumeMount{{Name: "config"}}, []corev1.VolumeMount{{Name: "items"}}, []corev1.VolumeMount{{Name: "config", SubPath: "a"}}
	shown := text("a", "1", "build", "2")
	shown.Policy = &checksum.SourcePolicy{IgnoreKeys: []string{"build"}}
	shared, ignored := "volume config also serves a use that restart-on leaves out", "volume config shows a key that ignore-keys leaves out"
	for about, c := range map[string]struct {
		references []checksum.Reference
		startup    bool // restart-on: startup
		content    *checksum.Content
		want, why  string
	}{
		"env is startup":                      {template(nil, nil, true), false, text("a", "1"), "[startup]", ""},
		"a volume is live":                    {template(config, nil, false), false, text("a", "1"), "[live]", ""},
		"both":                                {template(config, nil, true), false, text("a", "1"), "[startup live]", ""},
		"a volume by subPath is startup":      {template(sub, nil, false), false, text("a", "1"), "[startup]", ""},
		"what restart-on leaves out is not":   {template(config, nil, true), true, text("a", "1"), "[startup]", ""},
		"a volume that serves both uses is":   {template(config, config, true), false, text("a", "1"), "[startup live]", ""},
		"but for one that is left out":        {template(config, config, true), true, text("a", "1"), "[]", shared},
		"env may read ignored keys":           {template(nil, nil, true), false, shown, "[startup]", ""},
		"a volume may not show them":          {template(config, nil, true), false, shown, "[startup]", ignored},
		"it takes all its uses with it":       {template(config, config, true), false, shown, "[]", ignored},
		"another volume takes part":           {template(append(config, items...), nil, false), false, shown, "[]", ignored},
		"one that shows other keys may":       {template(items, nil, true), false, shown, "[startup live]", ""},
		"subPath shows its key alone":         {template(sub, nil, false), false, shown, "[startup]", ""},
		"a volume that is not mounted is not": {template(nil, nil, false), false, text("a", "1"), "[]", "the pod template does not name it"},
		"also is not":                         {nil, false, text("a", "1"), "[]", "the pod template does not name it"},
	} {
		policy := pinningPolicy()
		if c.startup {
			policy.Uses = []checksum.Use{checksum.Startup}
		}
		if uses, why := checksum.PinUses(c.references, &policy, message, c.content); fmt.Sprint(uses) != c.want || why != c.why {
			t.Errorf("%s: pinned for %v, why not: %q; want %s, %q", about, uses, why, c.want, c.why)
		}
	}
}

// What Decide tells of sources of which something cannot be pinned.
func TestWhatIsNotPinnedIsTold(t *testing.T) {
	shown := text("a", "1", "build", "2")
	shown.Policy = &checksum.SourcePolicy{IgnoreKeys: []string{"build"}}
	left := text("a", "1")
	left.Policy = checksum.SourcePolicyOf(map[string]string{"configstamp.dev/pin": "false"})
	policy := pinningPolicy()
	policy.Also = []checksum.Source{extra}
	references := template([]corev1.VolumeMount{{Name: "config"}}, nil, true)
	a := admissionCase{
		Namespace: namespace, Create: true, Fresh: true, Pinning: true, Policy: policy, References: references, Selections: checksum.Selections(references, policy),
		Content: func(s checksum.Source) *checksum.Content { return world{message: shown, extra: text("x", "1")}[s] },
	}
	got := decide(ring, a)
	want := []string{
		"configstamp: not-pinned: configmap/web-extra: not pinned: the pod template does not name it; containers that start later read its content at that time",
		"configstamp: not-pinned: configmap/web-message: not pinned (live): volume config shows a key that ignore-keys leaves out; containers that start later read its content at that time",
	}
	if warnings := warningsOf(got.Findings); !slices.Equal(warnings, want) {
		t.Errorf("told %q", warnings)
	}
	if pin := got.NewPins[message]; len(got.NewPins) != 1 || !slices.Equal(pin.Uses, []checksum.Use{checksum.Startup}) {
		t.Errorf("pinned %s", got.NewPins)
	}
	a.Unmade = map[checksum.Source]reason.Reason{message: reason.SnapshotQuota}
	if got = decide(ring, a); got.Records.Pins != nil || len(got.NewPins) > 0 {
		t.Errorf("taken off again, there is %v", got.Records.Pins)
	}
	if warnings := warningsOf(got.Findings); !strings.HasSuffix(warnings[2], "configmap/web-message: not pinned: the quota of its namespace has no room for a snapshot; containers that start later read its content at that time") {
		t.Errorf("told %q", warnings)
	}
	a.Policy.Faults = []checksum.Fault{{Origin: checksum.OfWorkload, Key: "configstamp.dev/order", Value: "x"}}
	if found := decide(ring, a).Findings; len(found) != 4 || found[2].Reason != reason.UnreadableSetting || found[3].Reason != reason.NotPinned {
		t.Errorf("a snapshot that could not be made is found after the faults of the policy: %v", found)
	}
	a.Policy.Faults = nil
	a.Unmade = map[checksum.Source]reason.Reason{message: reason.NotPinned}
	got = decide(ring, a)
	if warnings := warningsOf(got.Findings); got.Records.Pins != nil || len(got.NewPins) > 0 || !strings.Contains(warnings[2], "only this request says that it pins") {
		t.Errorf("of what nothing but the request pins there is %v, told %q", got.Records.Pins, warnings)
	}
	a.Unmade = nil
	a.Content = func(s checksum.Source) *checksum.Content { return world{message: left}[s] }
	if got := decide(ring, a); len(got.NewPins) > 0 || len(got.Findings) > 0 {
		t.Errorf("its owner wants it not to be pinned: %s, %v", got.NewPins, got.Findings)
	}
	unreadable := checksum.SourcePolicyOf(map[string]string{"configstamp.dev/pin": "no"})
	if with := left.Policy; with.Equal(&checksum.SourcePolicy{}) || with.Equal(unreadable) || !with.Equal(checksum.SourcePolicyOf(map[string]string{"configstamp.dev/pin": " false "})) {
		t.Error("whether a source is pinned is no difference between policies, or one where there is none")
	}
	onNamespace := warningsOf(checksum.Unreadable(checksum.OfNamespace, map[string]string{"configstamp.dev/pin": "no"}))
	if want := `configstamp: pin-unreadable: configstamp.dev/pin on the Namespace: "no": want false or true; nothing is pinned until it is fixed, and nothing is held by it`; len(onNamespace) != 1 || onNamespace[0] != want {
		t.Errorf("on a Namespace it is told %q", onNamespace)
	}
	if !unreadable.Unpinned || len(unreadable.Faults) > 0 || len(unreadable.Findings(message)) != 1 {
		t.Errorf("unreadable, it is %+v", unreadable)
	}
}

func warningsOf(findings []checksum.Finding) (warnings []string) {
	for _, finding := range findings {
		warnings = append(warnings, finding.Warning())
	}
	return warnings
}
