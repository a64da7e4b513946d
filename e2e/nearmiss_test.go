package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/harness"
)

// metadata is a merge patch of labels or annotations (of).
func metadata(of string, values map[string]any) string {
	text, _ := json.Marshal(map[string]any{"metadata": map[string]any{of: values}}) // strings always can be written
	return string(text)
}

// waitSpelling waits for the chart's policy.
func waitSpelling(s *harness.Space) {
	s.Eventually("waiting for the policy", func() error {
		s.Patch("configmap/c", metadata("annotations", map[string]any{"configstamp.dev/unknown": "1"}))
		if len(s.Warnings()) == 0 {
			return errors.New("nothing is said")
		}
		return nil
	})
	s.Patch("configmap/c", `{"metadata": {"annotations": null}}`)
}

// What looks like ours and means nothing is warned of by the chart's policy, whoever is opted in.
func TestNearMiss_IsToldAtTheKeyboard(t *testing.T) {
	t.Parallel()
	const speaks = "Validation failed for ValidatingAdmissionPolicy 'configstamp-spelling' with binding 'configstamp-spelling': "
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	s.Set("secret/c", "k", "1")
	s.Create(deployment("d", "configmap/c"))
	objects := []string{"deployment/d", "namespace/" + s.Namespace, "configmap/c", "secret/c"}
	waitSpelling(s)

	tells := func(object, of string, values map[string]any, want ...string) {
		t.Helper()
		// An API server tries a write with what its cache has first, and says what it said of that too.
		s.Eventually(fmt.Sprintf("%s of %s: %v", of, object, values), func() error {
			s.Warnings()
			s.Patch(object, metadata(of, values))
			if said := s.Warnings(); !slices.Equal(said, want) {
				return fmt.Errorf("said %q, want %q", said, want)
			}
			return nil
		})
		undo := map[string]any{}
		for key := range values {
			undo[key] = nil
		}
		s.Patch(object, metadata(of, undo))
	}
	label := func(key string) string {
		return speaks + "configstamp knows no label " + key + ": its label is configstamp.dev/inject, and its settings are annotations"
	}
	annotation := func(key, object string) string {
		kind := map[string]string{"deployment": "Deployment", "namespace": "Namespace", "configmap": "ConfigMap", "secret": "Secret"}[kindOf(object)]
		return speaks + "configstamp knows no annotation " + key + " on a " + kind
	}
	for _, object := range objects {
		tells(object, "annotations", map[string]any{"configstamp.dev/pasue": "secret"}, annotation("configstamp.dev/pasue", object))
		tells(object, "labels", map[string]any{"configstamp.dev/inject": "enable"}, speaks+`the label configstamp.dev/inject opts neither in nor out: want enabled or disabled, not "enable"`)
		tells(object, "annotations", map[string]any{checksum.InjectLabel: "enabled"}, annotation(checksum.InjectLabel, object)+"; configstamp.dev/inject is a label")
		tells(object, "labels", map[string]any{checksum.PauseAnnotation: "true"}, label(checksum.PauseAnnotation))
	}
	for _, key := range []string{"configstamp.dev/injcet", "configstamp.dev/Inject", "configstamp.io/inject", "config-stamp.dev/inject", "configstmap.dev/inject", "configstamp/inject", "configmaps.configstamp.dev/c"} {
		tells("deployment/d", "labels", map[string]any{key: "enabled"}, label(key))
	}
	for _, key := range []string{"configstamp.teams.example.com/pause", "confluent.io/pause", "example.com/configstamp.dev", "pause"} {
		tells("deployment/d", "annotations", map[string]any{key: "x"})
	}
	many := map[string]any{}
	for i := range 500 {
		many[fmt.Sprintf("configstamp.dev/many-%d", i)] = "x"
	}
	s.Warnings()
	s.Patch("configmap/c", metadata("annotations", many))
	if said := s.Warnings(); len(said) == 0 || !strings.HasSuffix(said[len(said)-1], "… on a ConfigMap") || len(said[len(said)-1]) > 600 {
		t.Errorf("of many: %q", said)
	}
	many["configstamp.dev/one-more"] = "x"
	tells("configmap/c", "annotations", many) // it would take the API server too long

	for _, value := range []string{"enabled", "disabled"} {
		tells("deployment/d", "labels", map[string]any{checksum.InjectLabel: value, checksum.SnapshotLabel: "true"})
	}
	for _, object := range objects {
		known := knownOn(kindOf(object))
		tells(object, "annotations", known)
		for _, setting := range checksum.Settings() {
			if _, knows := known[setting.Key()]; !knows {
				tells(object, "annotations", map[string]any{setting.Key(): "x"}, annotation(setting.Key(), object))
			}
		}
	}
	tells("deployment/d", "annotations", map[string]any{"configstamp.dev/pin": "true"}, speaks+"configstamp.dev/pin has no effect, because pins are off (the chart's pins.enabled)")
}

func kindOf(object string) string {
	kind, _, _ := strings.Cut(object, "/")
	return kind
}

// knownOn are the annotations of ours that have a meaning on objects of a kind.
func knownOn(kind string) map[string]any {
	place, known := "workload", map[string]any{}
	switch kind {
	case "namespace":
		place, known = "Namespace", map[string]any{checksum.PausedByAnnotation: "{}"}
	case "configmap", "secret":
		place, known = "source", map[string]any{checksum.SnapshotOfAnnotation: "configmap/c", checksum.SnapshotMadeAnnotation: "x", "configstamp.dev/failed": "{}"}
	default:
		for _, key := range append(checksum.OursOnWorkload(), checksum.PinsAnnotation, checksum.PinnedAnnotation, checksum.PausedByAnnotation, "configstamp.dev/failed") {
			known[key] = "{}"
		}
		for _, kind := range checksum.Kinds() {
			known[checksum.StampKey(checksum.Source{Kind: kind, Name: "c"})] = "v1:absent"
		}
	}
	for _, setting := range checksum.Settings() {
		if slices.Contains(strings.Split(setting.On, ", "), place) {
			known[setting.Key()] = "x"
		}
	}
	return known
}

// A pod template is nothing to set anything on: neither an opt-in nor a setting there is read.
func TestNearMiss_OnAPodTemplateIsTold(t *testing.T) {
	t.Parallel()
	s := run.PlainSpace(t)
	s.Set("configmap/c", "k", "1")
	waitSpelling(s)
	for _, kind := range []string{"Deployment", "CronJob", "Job"} {
		manifest := workload(kind, "w", envFrom("configmap/c"))
		text := strings.Replace(manifest, "metadata: {labels: {", `metadata: {annotations: {configstamp.dev/pause: "true", configmap.configstamp.dev/c: "v1:absent", configstamp.dev/pins: "{}"}, labels: {configstamp.dev/inject: enabled, `, 1)
		said := s.KubectlInput(text, "create", "--dry-run=server", "-f", "-").Stderr
		if want := "configstamp reads nothing on a pod template: put it on the " + kind + " itself: configstamp.dev/inject, configstamp.dev/pause"; strings.Count(said, want) != 1 {
			t.Errorf("of a %s: said %q, want %q", kind, said, want)
		}
		// What the workload itself carries has its effect.
		text = strings.Replace(manifest, "labels: {", "labels: {configstamp.dev/inject: enabled, ", 2)
		if said := s.KubectlInput(text, "create", "--dry-run=server", "-f", "-").Stderr; strings.Contains(said, "pod template") {
			t.Errorf("of a %s: said %q", kind, said)
		}
	}
}
