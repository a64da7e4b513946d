package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// SecretProviderClasses, by a minimal definition of what the Secrets Store CSI
// driver writes for each pod. The test is the driver.

const (
	statusDefinition = "secretproviderclasspodstatuses.secrets-store.csi.x-k8s.io"
	vault            = "secretproviderclass/web-vault"
)

// defineStatuses has the API server serve them until the test ends.
func defineStatuses(t *testing.T, s *harness.Space) {
	t.Helper()
	goneAtTheEnd(t, s, statusDefinition)
	run.Install(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: `+statusDefinition+`}
spec:
  group: secrets-store.csi.x-k8s.io
  scope: Namespaced
  names: {kind: SecretProviderClassPodStatus, plural: secretproviderclasspodstatuses, singular: secretproviderclasspodstatus, listKind: SecretProviderClassPodStatusList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status:
            type: object
            properties:
              podName: {type: string}
              secretProviderClassName: {type: string}
              targetPath: {type: string}
              mounted: {type: boolean}
              objects: {type: array, items: {type: object, properties: {id: {type: string}, version: {type: string}}}}
`)
	s.Eventually("waiting until statuses are served", func() error {
		_, err := s.TryGet("secretproviderclasspodstatus/none")
		if err != nil && strings.Contains(err.Error(), "could not find the requested resource") {
			return err
		}
		return nil
	})
}

// statusOf names the status of a pod, as the driver does.
func statusOf(s *harness.Space, pod string) string {
	return "secretproviderclasspodstatus/" + pod + "-" + s.Namespace + "-web-vault"
}

// mount has the driver report what it has mounted for a pod, remount what it
// finds later.
func mount(s *harness.Space, pod, version string) {
	_, name, _ := strings.Cut(statusOf(s, pod), "/")
	s.Create(fmt.Sprintf("apiVersion: secrets-store.csi.x-k8s.io/v1\nkind: SecretProviderClassPodStatus\nmetadata: {name: %s}\n"+
		"status: {podName: %s, secretProviderClassName: web-vault, mounted: true, targetPath: /x, objects: [{id: secret/db, version: %q}]}\n", name, pod, version))
}

func remount(s *harness.Space, pod, version string) {
	s.Patch(statusOf(s, pod), fmt.Sprintf(`{"status":{"objects":[{"id":"secret/db","version":%q}]}}`, version))
}

// versioned is what the digest of the class has to be.
func versioned(t *testing.T, s *harness.Space, version string) string {
	t.Helper()
	keys, err := s.Run.Keys()
	harness.Must(t, err)
	return harness.Digest(keys[len(keys)-1].Material, "secretproviderclass", s.Namespace, "web-vault", map[string][]byte{"secret/db": []byte(version)}, nil)
}

// withClasses are options under which classes count.
func withClasses() harness.Options {
	options, flag := harness.Usual(), "--secret-provider-classes"
	options.Webhook, options.Controller = append(options.Webhook, flag), append(options.Controller, flag)
	return options
}

// providing is a Deployment that mounts the class and reads ConfigMap c.
func providing(name string) string {
	return workload("Deployment", name, envFrom("configmap/c")+"volumeMounts: [{name: vault, mountPath: /vault, readOnly: true}]\n",
		"volumes: [{name: vault, csi: {driver: secrets-store.csi.k8s.io, readOnly: true, volumeAttributes: {secretProviderClass: web-vault}}}]\n")
}

func TestProviderClass_ANewVersionRollsOnce(t *testing.T) {
	product := run.Exclusive(t)
	harness.Must(t, product.Restart(t.Context(), withClasses()))
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Create(providing("d"))
	before := s.Settled("deployment/d")
	defineStatuses(t, s) // after our start
	s.Quiet()
	s.Unchanged(before)
	if record := s.Record("deployment/d", vault); record != "" {
		t.Errorf("%q is on record before anybody reports", record)
	}
	wantStamp(t, s, "deployment/d", "configmap/c")

	mount(s, "d-1", "1")
	s.Eventually("waiting until what the first pod reports is on record", func() error {
		if got, want := s.Record("deployment/d", vault), versioned(t, s, "1"); got != want {
			return fmt.Errorf("%q is on record, want %q", got, want)
		}
		return nil
	})
	s.WantRolls(before, rolls{})
	s.WantNote("deployment/d", "ConfigRecorded: "+vault+" is recorded as it is now")

	for _, version := range []string{"2", "3"} {
		before = s.Counts()
		remount(s, "d-1", version)
		s.WantRolls(before, rolls{"deployment/d": 1})
		if got, want := s.Stamp("deployment/d", vault), versioned(t, s, version); got != want || s.Record("deployment/d", vault) != want {
			t.Errorf("stamp %q, want %q", got, want)
		}
		if version == "2" {
			s.WantNote("deployment/d", "ConfigChanged: "+vault+" changed: rolling out")
		}
	}

	before = s.Counts()
	mount(s, "d-2", "3")
	s.Patch(statusOf(s, "d-1"), `{"metadata":{"labels":{"x":"y"}}}`)
	s.Quiet()
	s.Unchanged(before)
	mount(s, "d-3", "4") // and the others follow
	remount(s, "d-1", "4")
	remount(s, "d-2", "4")
	s.WantRolls(before, rolls{"deployment/d": 1})

	before = s.Counts()
	for _, pod := range []string{"d-3", "d-2", "d-1"} {
		s.Delete(statusOf(s, pod))
	}
	s.Quiet()
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	if got, want := s.Stamp("deployment/d", vault), versioned(t, s, "4"); got != want {
		t.Errorf("nobody reports any more, and the stamp is %q, want %q", got, want)
	}
}

// What was reported while nobody of ours ran is found at the start.
func TestProviderClass_ReportedWhileWeWereAway(t *testing.T) {
	product := run.Exclusive(t)
	s := run.Space(t)
	defineStatuses(t, s)
	harness.Must(t, product.Restart(t.Context(), withClasses()))
	s.Set("configmap/c", "k", "1")
	mount(s, "other-1", "1")
	s.Eventually("waiting until a new workload is stamped", func() error {
		if got, want := harness.Stamps(s.DryCreate(providing("d")))[harness.StampKey(vault)], versioned(t, s, "1"); got != want {
			return fmt.Errorf("stamp %q, want %q", got, want)
		}
		return nil
	})
	s.Create(providing("d"))
	before := s.Settled("deployment/d")
	harness.Must(t, product.Stop())
	mount(s, "d-1", "2")
	harness.Must(t, product.Start(t.Context()))
	s.WantRolls(before, rolls{"deployment/d": 1})
	before = s.Counts()
	harness.Must(t, product.Restart(t.Context(), withClasses()))
	s.Quiet()
	s.Unchanged(before)
}

func TestProviderClass_OffByDefault(t *testing.T) {
	run.Exclusive(t) // one definition at a time
	s := run.Space(t)
	defineStatuses(t, s)
	s.Set("configmap/c", "k", "1")
	mount(s, "d-1", "1")
	s.Create(providing("d"))
	before := s.Settled("deployment/d")
	remount(s, "d-1", "2")
	s.Quiet()
	s.Unchanged(before)
	if record := s.Record("deployment/d", vault); record != "" {
		t.Errorf("%q is on record", record)
	}
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}
