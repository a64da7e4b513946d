package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// What is said where workloads do not simply roll: when they do, and why not.
func TestImpact_SaysWhatHolds(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	now := time.Now().UTC()
	until, opens := now.Add(26*time.Hour).Truncate(time.Minute), now.Add(2*time.Hour).Truncate(time.Hour)
	const minutes = "2006-01-02 15:04 UTC"
	rows := []struct {
		name     string
		settings settings
		manifest string // of deployment/<name>; "": it reads key k of configmap/<name>
		args     []string
		said     string
		rolls    bool
	}{
		{name: "paused", settings: settings{"pause": "true"}, said: "deployment/paused rolls out when somebody removes configstamp.dev/pause"},
		{name: "until", settings: settings{"pause": until.Format(time.RFC3339)}, said: "deployment/until rolls out when the pause ends, " + until.Format(minutes)},
		{name: "window", settings: settings{"window": fmt.Sprintf("Mon-Sun %02d:00-%02d:00 UTC", opens.Hour(), opens.Add(time.Hour).Hour())},
			said: "deployment/window rolls out when the window opens, " + opens.Format(minutes)},
		{name: "observed", settings: settings{"mode": "observe"}, said: "deployment/observed would roll out, but the mode is observe"},
		{name: "unreadable", settings: settings{"pause": "sometimes"}, said: "deployment/unreadable rolls out when a setting that cannot be read is fixed"},
		{name: "no-replicas", manifest: noReplicas(readerOf("no-replicas", "configmap/no-replicas", "k")), rolls: true,
			said: "no pod of deployment/no-replicas restarts now: pods that start later use the new content"},
		{name: "optional", manifest: deployment("optional", "configmap/optional?"), args: []string{"delete", "configmap/optional"}, rolls: true,
			said: "this deletion rolls out deployment/optional"},
		{name: "required", args: []string{"delete", "configmap/required"}, said: "without this configmap no new pod of deployment/required can start"},
		{name: "key", args: []string{"patch", "configmap/key", "-p", `{"data":{"k":null}}`}, said: `without the key "k" no new pod of deployment/key can start`},
		{name: "key-of-all", manifest: deployment("key-of-all", "configmap/key-of-all"), args: []string{"patch", "configmap/key-of-all", "-p", `{"data":{"unused":null}}`}, rolls: true,
			said: "this change rolls out deployment/key-of-all"},
	}
	var users []string
	want := rolls{}
	for _, row := range rows {
		s.Set("configmap/"+row.name, "k", "1", "unused", "1")
		if row.manifest == "" {
			row.manifest = readerOf(row.name, "configmap/"+row.name, "k")
		}
		s.Create(withPolicy(row.manifest, row.settings))
		if users = append(users, "deployment/"+row.name); row.rolls {
			want["deployment/"+row.name] = 1
		}
	}
	before := s.Settled(users...)
	for _, dry := range [][]string{{"--dry-run=server"}, nil} {
		for _, row := range rows {
			if row.args == nil {
				row.args = []string{"patch", "configmap/" + row.name, "-p", `{"data":{"k":"2"}}`}
			}
			wantSaid(t, row.name, s.Kubectl(append(row.args[:len(row.args):len(row.args)], dry...)...), "configstamp: "+row.said)
		}
	}
	s.WantRolls(before, want)
}

// Of many users some are named, and each that something holds is told of apart.
func TestImpact_SaysWhatHolds_OfMany(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	var users []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.Create(readerOf(name, "configmap/c", "k"))
		users = append(users, "deployment/"+name)
	}
	s.Create(withPolicy(readerOf("held", "configmap/c", "k"), settings{"pause": "true"}))
	before := s.Settled(append(users, "deployment/held")...)
	wantSaid(t, "an edit", s.Kubectl("patch", "configmap/c", "-p", `{"data":{"k":"2"}}`),
		"configstamp: this change rolls out deployment/a, deployment/b and 3 more",
		"configstamp: deployment/held rolls out when somebody removes configstamp.dev/pause")
	s.WantRolls(before, rolls{"deployment/a": 1, "deployment/b": 1, "deployment/c": 1, "deployment/d": 1, "deployment/e": 1})
}

// Secrets are told of where that is on, and never those in which Helm keeps releases.
func TestImpact_Secrets(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("secret/s", "k", "1")
	s.KubectlInput("apiVersion: v1\nkind: Secret\nmetadata: {name: release}\ntype: helm.sh/release.v1\nstringData: {k: \"1\"}\n", "create", "-f", "-")
	s.Create(readerOf("d", "secret/s", "k"))
	s.Create(readerOf("r", "secret/release", "k"))
	before := s.Settled("deployment/d", "deployment/r")
	wantSaid(t, "a release of Helm", s.Kubectl("patch", "secret/release", "-p", `{"stringData":{"k":"2"}}`))
	wantSaid(t, "a Secret, as a dry run", s.Kubectl("patch", "secret/s", "-p", `{"stringData":{"k":"2"}}`, "--dry-run=server"), "configstamp: this change rolls out deployment/d")
	wantSaid(t, "a Secret", s.Kubectl("patch", "secret/s", "-p", `{"stringData":{"k":"2"}}`), "configstamp: this change rolls out deployment/d")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

// As it is shipped nothing is said of Secrets, nor to any service account.
func TestImpact_AsShipped(t *testing.T) {
	run.Exclusive(t)
	run := run.Of(t)
	s := run.Space(t)
	s.Kubectl("create", "rolebinding", "writers", "--clusterrole=edit", "--group=writers")
	s.Set("secret/s", "k", "1")
	s.Set("configmap/c", "k", "1")
	s.Create(deployment("d", "secret/s", "configmap/c"))
	s.Settled("deployment/d")
	deploys := append([]string{"patch", "configmap/c", "-p", `{"data":{"k":"2"}}`, "--dry-run=server"}, deployer...)
	const rollsD = "configstamp: this change rolls out deployment/d"
	wantSaid(t, "a service account that is listed", s.Kubectl(deploys...), rollsD)

	run.Configure(t, "ValidatingWebhookConfiguration", "deploy/install.yaml")
	s.Eventually("waiting until the API server heeds it", func() error {
		if said := s.Kubectl(deploys...).Warnings(); len(said) > 0 {
			return errors.New(said[0])
		}
		return nil
	})
	wantSaid(t, "a Secret", s.Kubectl("patch", "secret/s", "-p", `{"stringData":{"k":"2"}}`, "--dry-run=server"))
	wantSaid(t, "a ConfigMap", s.Kubectl("patch", "configmap/c", "-p", `{"data":{"k":"2"}}`, "--dry-run=server"), rollsD)
}

// noReplicas is a Deployment that is scaled to zero.
func noReplicas(manifest string) string {
	return strings.Replace(manifest, "replicas: 1", "replicas: 0", 1)
}
