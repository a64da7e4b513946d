package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

// metadata is a merge patch of labels or annotations (of).
func metadata(of string, values map[string]any) string {
	text, _ := json.Marshal(map[string]any{"metadata": map[string]any{of: values}}) // strings always can be written
	return string(text)
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
	s.Eventually("waiting for the policy", func() error {
		s.Patch("configmap/c", metadata("annotations", map[string]any{"configstamp.dev/unknown": "1"}))
		if len(s.Warnings()) == 0 {
			return errors.New("nothing is said")
		}
		return nil
	})
	s.Patch("configmap/c", `{"metadata": {"annotations": null}}`)

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
	const unknown = speaks + "configstamp knows no label or annotation "
	for _, object := range objects {
		tells(object, "annotations", map[string]any{"configstamp.dev/pasue": "secret"}, unknown+"configstamp.dev/pasue")
		tells(object, "labels", map[string]any{"configstamp.dev/inject": "enable"}, speaks+`the label configstamp.dev/inject opts neither in nor out: want enabled or disabled, not "enable"`)
	}
	for _, key := range []string{"configstamp.dev/injcet", "configstamp.dev/Inject", "configstamp.io/inject", "config-stamp.dev/inject", "configstmap.dev/inject", "configstamp/inject", "configmaps.configstamp.dev/c"} {
		tells("deployment/d", "labels", map[string]any{key: "enabled"}, unknown+key)
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
	if said := s.Warnings(); len(said) == 0 || !strings.HasSuffix(said[len(said)-1], "…") || len(said[len(said)-1]) > 600 {
		t.Errorf("of many: %q", said)
	}
	many["configstamp.dev/one-more"] = "x"
	tells("configmap/c", "annotations", many) // it would take the API server too long

	known := map[string]any{
		checksum.PinsAnnotation: "{}", checksum.PinnedAnnotation: "{}", checksum.SnapshotOfAnnotation: "configmap/c", checksum.SnapshotMadeAnnotation: "x",
		checksum.PausedByAnnotation: "{}", "configstamp.dev/failed": "{}",
	}
	for _, setting := range checksum.Settings() {
		known[setting.Key()] = "x"
	}
	for _, key := range checksum.OursOnWorkload() {
		known[key] = "{}"
	}
	for _, kind := range checksum.Kinds() {
		known[checksum.StampKey(checksum.Source{Kind: kind, Name: "c"})] = "v1:absent"
	}
	for _, object := range objects {
		tells(object, "annotations", known)
	}
	for _, value := range []string{"enabled", "disabled"} {
		tells("deployment/d", "labels", map[string]any{checksum.InjectLabel: value, checksum.SnapshotLabel: "true"})
	}
}
