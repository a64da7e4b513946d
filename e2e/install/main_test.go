// Package install has every way to install configstamp that the docs name, on a
// real cluster with the real cert-manager: install, see the main job done,
// upgrade, go back, uninstall, and see what is left.
package install

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/pods"
)

// appImage is e2e/rollouts/app.
const appImage = "install-app:1"

var cluster *pods.Cluster

func TestMain(m *testing.M) {
	os.Exit(pods.Wanted{}.Main(m, func(c *pods.Cluster) error {
		cluster = c
		return c.Run.LoadImage(context.Background(), "./e2e/rollouts/app", appImage)
	}))
}

// app is a workload that reads a ConfigMap when it starts, and runs.
const app = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
      containers:
        - {name: app, image: "` + appImage + `", imagePullPolicy: Never, args: [lenient], envFrom: [{configMapRef: {name: message}}],
           readinessProbe: {httpGet: {path: /, port: 3000}, periodSeconds: 1}}
`

// shop is a namespace with the app in it.
type shop struct {
	*harness.Space
	t *testing.T
}

// openShop makes a namespace that is not opted in, with the app running in it.
func openShop(t *testing.T) *shop {
	t.Helper()
	return fill(t, cluster.PlainSpace(t))
}

func fill(t *testing.T, s *harness.Space) *shop {
	t.Helper()
	s.WaitServiceAccount()
	s.Set("configmap/message", "SETTING", "0")
	s.Apply(app)
	s.Kubectl("rollout", "status", "deployment/web", "--timeout=5m")
	return &shop{s, t}
}

// EventuallyRecorded waits until what the app uses is on record.
func (s *shop) EventuallyRecorded() {
	s.t.Helper()
	s.Eventually("waiting for a record of configmap/message", func() error {
		if s.Record("deployment/web", "configmap/message") == "" {
			return errors.New("there is none")
		}
		return nil
	})
}

// told is rolls for somebody with kubectl, who is told what rolls out.
func (s *shop) told(content string) {
	s.t.Helper()
	s.rollsBy(func() { s.edits(content) })
}

// edits edits what the app uses by kubectl, which says what rolls out: to a dry run, and to
// the edit itself.
func (s *shop) edits(content string) {
	s.t.Helper()
	const want = "configstamp: this change rolls out deployment/web"
	s.EventuallyIn(time.Minute, "waiting until who edits is told what rolls out", func() error {
		dry := s.Kubectl("patch", "configmap/message", "--dry-run=server", "--patch", `{"data":{"SETTING":"dry"}}`)
		if !slices.Equal(dry.Warnings(), []string{want}) {
			return fmt.Errorf("kubectl says %q", dry.Stderr)
		}
		return nil
	})
	edit := s.KubectlEnv([]string{`EDITOR=sed -i 's|SETTING: .*|SETTING: "` + content + `"|'`}, "edit", "configmap/message")
	if !slices.Equal(edit.Warnings(), []string{want}) {
		s.t.Errorf("kubectl edit says %q, want %q", edit.Stderr, want)
	}
}

// rolls edits what the app uses, and checks that it rolls out, once.
func (s *shop) rolls(content string) {
	s.t.Helper()
	s.rollsBy(func() { s.Set("configmap/message", "SETTING", content) })
}

func (s *shop) rollsBy(edit func()) {
	s.t.Helper()
	before := s.Counts()
	edit()
	s.WantRolls(before, harness.Rolls{"deployment/web": 1})
	s.Kubectl("rollout", "status", "deployment/web", "--timeout=5m")
	if s.Stamp("deployment/web", "configmap/message") != s.Digest("configmap/message") {
		s.t.Error("the stamp is not that of the new content")
	}
}

// still checks that something restarts nothing.
func (s *shop) still(what string, do func()) {
	s.t.Helper()
	before, pods := s.Counts(), s.pods()
	do()
	s.Unchanged(before)
	if now := s.pods(); now != pods {
		s.t.Errorf("%s: there are other Pods than before:\n%s\nbefore:\n%s", what, now, pods)
	}
}

// pods are the Pods and how often their containers have started.
func (s *shop) pods() string {
	s.t.Helper()
	return s.Kubectl("get", "pods", "--sort-by=.metadata.name", "-o",
		`go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.uid}}{{range .status.containerStatuses}} {{.restartCount}}{{end}}{{"\n"}}{{end}}{{end}}`).Stdout
}

// kinds are all that can be listed, but what comes and goes by itself.
func kinds(t *testing.T) string {
	t.Helper()
	var kinds []string
	for kind := range strings.FieldsSeq(cluster.Kubectl(t, "api-resources", "--verbs=list", "-o", "name")) {
		switch kind {
		case "events", "events.events.k8s.io", "componentstatuses", "endpoints", "namespaces":
		default:
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, ",")
}

// wantNothingLeft checks that an uninstallation, and the deletion of the definition that Helm leaves, left nothing that is
// called, or labelled, as ours.
func wantNothingLeft(t *testing.T) {
	t.Helper()
	cluster.Kubectl(t, "delete", "crd", "configrollouts.configstamp.dev", "--ignore-not-found")
	space := cluster.Existing(t, harness.OwnNamespace)
	space.Eventually("waiting until nothing of ours is left", func() error {
		var left []string
		all := cluster.Kubectl(t, "get", kinds(t), "--all-namespaces", "--ignore-not-found", "-o",
			`custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,APP:.metadata.labels.app\.kubernetes\.io/name`, "--no-headers")
		for line := range strings.Lines(all) {
			fields := strings.Fields(line)
			if len(fields) == 4 && (fields[3] == "configstamp" || strings.Contains(fields[2], "configstamp")) {
				left = append(left, strings.Join(fields, " "))
			}
		}
		if len(left) > 0 {
			return errors.New(strings.Join(left, "; "))
		}
		return nil
	})
}

// path is that of a file of the project.
func path(t *testing.T, name string) string {
	t.Helper()
	root, err := harness.Root()
	harness.Must(t, err)
	return filepath.Join(root, filepath.FromSlash(name))
}

// stranger writes a kubeconfig that has a token and nothing else.
func stranger(t *testing.T, server, authority, token string) string {
	t.Helper()
	pem, err := base64.StdEncoding.DecodeString(authority)
	harness.Must(t, err)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	harness.Must(t, harness.WriteKubeconfig(file, server, pem, token))
	return file
}
