// Package records proves what pins write, and what they say, where no container is needed:
// snapshots, the annotations of templates and Pods, warnings of the real kubectl, collection.
// Package pins looks at containers.
package records

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// run is the cluster and the product of this test binary.
var run *harness.Run

// Nothing is kept for long, so that collection is seen.
const grace = 10 * time.Second

func options() harness.Options {
	return harness.Options{Settle: harness.Settle, Webhook: []string{"--pins"}, Controller: []string{
		"--pins", "--snapshots=1", "--snapshot-grace=" + grace.String(),
	}}
}

func TestMain(m *testing.M) {
	wanted := harness.Wanted{Manifest: "pins.yaml", Options: options(), Audit: &harness.Audit{}}
	os.Exit(wanted.Main(m, func(r *harness.Run) error { run = r; return nil }))
}

// rolls are how often workloads are to roll.
type rolls = harness.Rolls

// The source of most tests, and a workload that reads it.
const (
	source = "configmap/web-message"
	web    = "deployment/web-app"
)

// space is a namespace that pins.
func space(t *testing.T) *harness.Space {
	t.Helper()
	s := run.Space(t)
	s.WaitServiceAccount()
	s.SetPolicy("namespace", map[string]string{"pin": "true", "min-interval": "1ms"})
	time.Sleep(time.Second) // every process knows
	return s
}

// manifest is a workload that reads the source in two ways.
func manifest(kind, name, annotations string) string {
	spec := map[string]string{"Deployment": "revisionHistoryLimit: 3, ", "StatefulSet": "serviceName: none, "}[kind]
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: %[1]s
metadata: {name: %[2]s, annotations: {%[3]s}}
spec: {%[4]sselector: {matchLabels: {app: %[2]s}}, template: {metadata: {labels: {app: %[2]s}}, spec: {
  containers: [{name: app, image: 'registry.example/app:1', envFrom: [{configMapRef: {name: web-message, optional: true}}], volumeMounts: [{name: files, mountPath: /files}]}],
  volumes: [{name: files, configMap: {name: web-message}}]}}}
`, kind, name, annotations, spec)
}

// pinOf is the snapshot that a workload's template names for the source, "" for none, and
// for which uses.
func pinOf(s *harness.Space, workload string) (name, uses string) {
	text, is := harness.TemplateAnnotations(s.Get(workload))["configstamp.dev/pins"]
	if !is {
		return "", ""
	}
	pins := map[string]string{}
	if err := json.Unmarshal([]byte(text), &pins); err != nil {
		return "unreadable: " + text, ""
	}
	name, uses, _ = strings.Cut(pins[source], " ")
	return name, uses
}

// wantPin waits until a workload's template names a snapshot of the source, with its stamp
// as it has to be now, and gives its name.
func wantPin(t *testing.T, s *harness.Space, workload string) string {
	t.Helper()
	shape := regexp.MustCompile(`^web-message-[0-9a-f]{20}$`)
	var name string
	s.Eventually("waiting for a pin", func() error {
		var uses string
		name, uses = pinOf(s, workload)
		switch {
		case s.Stamp(workload, source) != s.Digest(source):
			return fmt.Errorf("the stamp of %s is not that of the content", workload)
		case !shape.MatchString(name) || uses != "startup,live":
			return fmt.Errorf("%s is pinned to %q for %q", workload, name, uses)
		}
		return nil
	})
	return name
}

// snapshots are those of a space, by name.
func snapshots(t *testing.T, s *harness.Space) map[string]corev1.ConfigMap {
	t.Helper()
	list, err := run.Client.CoreV1().ConfigMaps(s.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "configstamp.dev/snapshot=true"})
	harness.Must(t, err)
	found := map[string]corev1.ConfigMap{}
	for _, one := range list.Items {
		found[one.Name] = one
	}
	return found
}

// wantSaid checks that a warning holds all of some words.
func wantSaid(t *testing.T, result harness.Result, words ...string) {
	t.Helper()
	for _, word := range words {
		if !slices.ContainsFunc(result.Warnings(), func(text string) bool { return strings.Contains(text, word) }) {
			t.Errorf("no warning says %q: %q", word, result.Warnings())
		}
	}
}
