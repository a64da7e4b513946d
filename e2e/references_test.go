package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Which keys of which sources count, and what happens when they come and go.

func each(workloads []string, times int) rolls {
	all := rolls{}
	for _, workload := range workloads {
		all[workload] = times
	}
	return all
}

func TestReferences_UnmountedVolumesAndTheNodesSecretsRestartNothing(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/unmounted", "k", "1")
	s.Set("secret/pull", "k", "1")
	s.Set("configmap/used", "k", "1")
	s.Create(workload("Deployment", "d", envFrom("configmap/used"), "volumes: [{name: u, configMap: {name: unmounted}}]\n", "imagePullSecrets: [{name: pull}]\n"))
	before := s.Settled("deployment/d")
	if stamps := harness.Stamps(s.Get("deployment/d")); len(stamps) != 1 {
		t.Errorf("stamps %v, want that of configmap/used alone", stamps)
	}
	s.Set("configmap/unmounted", "k", "2")
	s.Set("secret/pull", "k", "2")
	s.Unchanged(before)
	s.Set("configmap/used", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

// A Secret of Helm's type is watched by nobody, whatever its name is: it is not stamped, and holds nothing.
func TestReferences_ASecretOfHelmsTypeHoldsNothing(t *testing.T) {
	t.Parallel()
	for about, adopted := range map[string]bool{"created": false, "adopted": true} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			s := run.PlainSpace(t)
			if !adopted {
				s.Label("enabled")
			}
			s.Set("configmap/conf", "SETTING_A", "1")
			s.KubectlInput("apiVersion: v1\nkind: Secret\nmetadata: {name: release}\ntype: helm.sh/release.v1\nstringData: {k: \"1\"}\n", "create", "-f", "-")
			applied := s.Apply(deployment("d", "configmap/conf", "secret/release"))
			if adopted {
				s.Label("enabled")
				wantBaselines(t, s, map[string][]string{"deployment/d": {"configmap/conf"}})
			} else if !strings.Contains(applied.Stderr, "secret/release has Helm's own type helm.sh/release.v1") {
				t.Errorf("warned %q", applied.Stderr)
			}
			before := s.Settled("deployment/d")
			s.Patch("secret/release", `{"stringData":{"k":"2"}}`)
			s.Set("configmap/conf", "SETTING_A", "2")
			s.WantRolls(before, rolls{"deployment/d": 1})
			wantStamps(t, s, "deployment/d", "configmap/conf")
		})
	}
}

func TestReferences_PlatformSourcesAreIgnored(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/used", "k", "1")
	s.Create(workload("Deployment", "d", envFrom("configmap/used")+"volumeMounts: [{name: ca, mountPath: /ca}]\n", "volumes: [{name: ca, configMap: {name: kube-root-ca.crt}}]\n"))
	before := s.Settled("deployment/d")
	if stamps := harness.Stamps(s.Get("deployment/d")); len(stamps) != 1 {
		t.Errorf("stamps %v, want that of configmap/used alone", stamps)
	}
	s.Set("configmap/used", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

func TestReferences_NamesOf253Characters(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	long := strings.Repeat("x.", 126) + "y" // 253
	s.Set("secret/"+long, "k", "1")
	for _, kind := range restamped {
		s.Create(workload(kind, "w", envFrom("secret/"+long)))
	}
	users := []string{"deployment/w", "statefulset/w", "daemonset/w", "cronjob/w"}
	before := s.Settled(users...)
	for _, user := range users {
		wantStamp(t, s, user, "secret/"+long)
	}
	s.Set("secret/"+long, "k", "2")
	s.WantRolls(before, each(users, 1))
	for _, user := range users {
		wantStamp(t, s, user, "secret/"+long)
	}
}

func TestReferences_DataAndBinaryDataAreOneMapButEnvironmentReadsDataAlone(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Create(workload("Deployment", "mount", "volumeMounts: [{name: v, mountPath: /v}]\n", "volumes: [{name: v, configMap: {name: c}}]\n"))
	s.Create(workload("Deployment", "env", "env: [{name: A, valueFrom: {configMapKeyRef: {name: c, key: k}}}]\n"))
	before := s.Settled("deployment/mount", "deployment/env")
	s.Patch("configmap/c", `{"data":null,"binaryData":{"k":"Mg=="}}`) // 2
	// For env the key is gone now, and a rollout could only break.
	s.WantRolls(before, rolls{"deployment/mount": 1})
	s.Set("configmap/c", "k", "3")
	s.WantRolls(before, rolls{"deployment/mount": 2, "deployment/env": 1})
}

func TestReferences_RequiredSourceDeletedAndTheTemplateChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s, before := one(t, "k", "1")
	s.Delete("configmap/c")
	image := s.Kubectl("set", "image", "deployment/d", "app=registry.example/app:2")
	wantWarning(t, image, "configmap/c does not exist")
	s.WantRolls(before, rolls{"deployment/d": 1})
	if stamps := harness.Stamps(s.Get("deployment/d")); len(stamps) > 0 {
		t.Errorf("stamped without a source: %v", stamps)
	}
	s.Set("configmap/c", "k", "2")
	wantBaselines(t, s, map[string][]string{"deployment/d": {"configmap/c"}})
	s.WantRolls(before, rolls{"deployment/d": 1}) // its first content is the baseline
	s.Set("configmap/c", "k", "3")
	s.WantRolls(before, rolls{"deployment/d": 2})
	wantStamp(t, s, "deployment/d", "configmap/c")
}

func TestReferences_ARolloutIsHeldWhileAnotherRequiredSourceIsMissing(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Set("secret/s", "k", "1")
	s.Create(deployment("d", "configmap/c", "secret/s"))
	before := s.Settled("deployment/d")
	s.Delete("secret/s")
	s.Set("configmap/c", "k", "2")
	s.Unchanged(before)
	s.WantNote("deployment/d", "RolloutHeld: configmap/c changed, but nothing rolls while secret/s does not exist")
	s.Set("secret/s", "k", "1")
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
	wantStamp(t, s, "deployment/d", "secret/s")
}

func TestReferences_NamesThatNoObjectCanHaveAreWarnedOf(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	manifest := workload("Deployment", "d", envFrom("configmap/c"), "volumes: [{name: v, configMap: {name: Not_A_Name}}]\n")
	wantWarning(t, s.Apply(manifest), `invalid-name: `)
	before := s.Settled("deployment/d")
	if stamps := harness.Stamps(s.Get("deployment/d")); len(stamps) != 1 {
		t.Errorf("stamps %v, want that of configmap/c alone", stamps)
	}
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

func TestReferences_EveryKindRollsByItsOwnController(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Set("configmap/other", "k", "1")
	var users []string
	for _, kind := range restamped {
		s.Create(workload(kind, "user", envFrom("configmap/c")))
		s.Create(workload(kind, "bystander", envFrom("configmap/other")))
		users = append(users, strings.ToLower(kind)+"/user")
	}
	before := s.Settled(append(users, "deployment/bystander", "statefulset/bystander", "daemonset/bystander", "cronjob/bystander")...)
	for i := range 2 {
		s.Set("configmap/c", "k", fmt.Sprint(i+2))
		s.WantRolls(before, each(users, i+1))
	}
	for _, user := range users {
		wantStamp(t, s, user, "configmap/c")
	}
}

// kube-root-ca.crt comes a moment after its namespace.
func TestReferences_NobodyIsToldOfWhatThePlatformIsAboutToMake(t *testing.T) {
	t.Parallel()
	manifest := workload("Deployment", "d", envFrom("configmap/kube-root-ca.crt")+"volumeMounts: [{name: ca, mountPath: /ca}]\n", "volumes: [{name: ca, configMap: {name: kube-root-ca.crt}}]\n")
	for _, policy := range []settings{nil, {"also": "configmap/kube-root-ca.crt"}} {
		for range 5 {
			s := run.Space(t)
			s.Create(withPolicy(manifest, policy))
			if warnings := s.Warnings(); len(warnings) > 0 {
				t.Errorf("%v: in a new namespace: %q", policy, warnings)
			}
			before := s.Settled("deployment/d")
			if policy != nil { // it is recorded once it is there, which rolls nothing
				s.Eventually("waiting for the record", func() error {
					if s.Record("deployment/d", "configmap/kube-root-ca.crt") == "" {
						return errors.New("there is none")
					}
					return nil
				})
			}
			s.Unchanged(before)
		}
	}
}
