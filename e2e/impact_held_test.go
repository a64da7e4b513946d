package e2e

import (
	"errors"
	"testing"
)

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
	s.Create(workload("Deployment", "d", "readinessProbe: {tcpSocket: {port: 80}}\n"+envFrom("secret/s", "configmap/c")))
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
