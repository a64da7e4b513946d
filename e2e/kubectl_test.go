package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What people do with kubectl: what rolls, what does not, what is printed.

// kubectled is Deployment d, applied with its ConfigMap c.
func kubectled(t *testing.T) (s *harness.Space, manifest string) {
	t.Helper()
	s = run.Space(t)
	s.Set("configmap/c", "k", "1")
	manifest = deployment("d", "configmap/c")
	wantNoWarnings(t, s.Apply(manifest))
	s.Settled("deployment/d")
	return s, manifest
}

func TestKubectl_ApplyClientSide(t *testing.T) {
	t.Parallel()
	s, manifest := kubectled(t)
	before := s.Counts()
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})

	before = s.Counts()
	if again := s.Apply(manifest); !strings.Contains(again.Stdout, "unchanged") {
		t.Errorf("the same manifest again: %s", again.Stdout)
	}
	s.Unchanged(before)
	wantNoWarnings(t, s.Apply(strings.Replace(manifest, "app:1", "app:2", 1)))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
}

func TestKubectl_ApplyServerSide(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	manifest := deployment("d", "configmap/c")
	apply := func(manifest string) harness.Result {
		return s.KubectlInput(manifest, "apply", "--server-side", "-f", "-")
	}
	wantNoWarnings(t, apply(manifest))
	before := s.Settled("deployment/d")
	wantStamp(t, s, "deployment/d", "configmap/c")
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})

	before = s.Counts()
	wantNoWarnings(t, apply(manifest)) // calls the webhook, and changes nothing
	s.Unchanged(before)
	wantNoWarnings(t, apply(strings.Replace(manifest, "app:1", "app:2", 1)))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
	// Nobody owns the stamps: another manager may apply without a conflict.
	s.KubectlInput(manifest, "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-")
	wantStamp(t, s, "deployment/d", "configmap/c")
}

func TestKubectl_SetImageAndSetEnvRollOnceWithTrueStamps(t *testing.T) {
	t.Parallel()
	s, _ := kubectled(t)
	before := s.Counts()
	wantNoWarnings(t, s.Kubectl("set", "image", "deployment/d", "app=registry.example/app:2"))
	s.WantRolls(before, rolls{"deployment/d": 1})
	s.Set("secret/s", "PASSWORD", "1")
	before = s.Counts()
	wantNoWarnings(t, s.Kubectl("set", "env", "deployment/d", "--from=secret/s"))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
	wantStamp(t, s, "deployment/d", "secret/s", "PASSWORD")
	before = s.Counts()
	s.Set("secret/s", "PASSWORD", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

func TestKubectl_ScaleAnnotateAndLabelRollNothing(t *testing.T) {
	t.Parallel()
	s, _ := kubectled(t)
	before := s.Counts()
	stamp := s.Stamp("deployment/d", "configmap/c")
	wantNoWarnings(t, s.Kubectl("scale", "deployment/d", "--replicas=3"))
	wantNoWarnings(t, s.Kubectl("annotate", "deployment/d", "note=x"))
	wantNoWarnings(t, s.Kubectl("label", "deployment/d", "team=a"))
	s.Unchanged(before)
	if now := s.Stamp("deployment/d", "configmap/c"); now != stamp {
		t.Errorf("the stamp went from %q to %q", stamp, now)
	}
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

func TestKubectl_AnnotatingOurAnnotationsAwayIsPutBackWithAWarning(t *testing.T) {
	t.Parallel()
	s, _ := kubectled(t)
	before := s.Counts()
	stamp := s.Stamp("deployment/d", "configmap/c")
	s.Kubectl("patch", "deployment/d", "-p", `{"spec":{"template":{"metadata":{"annotations":{"configmap.configstamp.dev/c":null}}}}}`)
	s.Unchanged(before)
	if now := s.Stamp("deployment/d", "configmap/c"); now != stamp {
		t.Errorf("the stamp went from %q to %q", stamp, now)
	}
	forged := s.Kubectl("patch", "deployment/d", "-p", `{"spec":{"template":{"metadata":{"annotations":{"configmap.configstamp.dev/c":"v1:absent"}}}}}`)
	wantWarning(t, forged, "to undo a change, put the old content back")
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

func TestKubectl_RolloutRestartRollsOnceAndTakesTheNewContent(t *testing.T) {
	t.Parallel()
	s, _ := kubectled(t)
	before := s.Counts()
	wantNoWarnings(t, s.Kubectl("rollout", "restart", "deployment/d"))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
}

func TestKubectl_RolloutUndoAcrossATemplateChangeBringsTheOldTemplateAndTodaysContent(t *testing.T) {
	t.Parallel()
	s, _ := kubectled(t)
	before := s.Counts()
	s.Kubectl("set", "image", "deployment/d", "app=registry.example/app:2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	before = s.Counts()
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})

	before = s.Counts()
	undo := s.Kubectl("rollout", "undo", "deployment/d", "--to-revision=1")
	wantWarning(t, undo, "not versioned") // revision 1 carries the stamp of the old content
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
	if image := s.Kubectl("get", "deployment/d", "-o", "jsonpath={.spec.template.spec.containers[0].image}").Stdout; image != "registry.example/app:1" {
		t.Errorf("the image after the undo is %s", image)
	}
}

func TestKubectl_RolloutPauseAndResume(t *testing.T) {
	t.Parallel()
	s, _ := kubectled(t)
	before := s.Counts()
	wantNoWarnings(t, s.Kubectl("rollout", "pause", "deployment/d"))
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	// The template is stamped; that nothing is rolled out is the pause's matter.
	s.Eventually("waiting for the stamp", func() error {
		if got, want := s.Stamp("deployment/d", "configmap/c"), s.Digest("configmap/c"); got != want {
			return fmt.Errorf("stamp %q, want %q", got, want)
		}
		return nil
	})
	s.Quiet()
	if now := s.Counts()["deployment/d"].Revisions; now != before["deployment/d"].Revisions {
		t.Errorf("a paused Deployment has %d ReplicaSets, and had %d", now, before["deployment/d"].Revisions)
	}
	wantNoWarnings(t, s.Kubectl("rollout", "resume", "deployment/d"))
	s.WantRolls(before, rolls{"deployment/d": 1})
}

func TestKubectl_ServerDryRunTellsTheTruthAndChangesNothing(t *testing.T) {
	t.Parallel()
	s, manifest := kubectled(t)
	dry := s.KubectlInput(deployment("new", "configmap/c"), "create", "--dry-run=server", "-o", "yaml", "-f", "-")
	if want := s.Digest("configmap/c"); !strings.Contains(dry.Stdout, want) {
		t.Errorf("the dry run of a creation does not show %s:\n%s", want, dry.Stdout)
	}
	before := s.Counts()
	for _, server := range []string{"--server-side=false", "--server-side=true"} {
		s.KubectlInput(strings.Replace(manifest, "app:1", "app:2", 1), "apply", "--dry-run=server", server, "--force-conflicts="+strings.TrimPrefix(server, "--server-side="), "-f", "-")
	}
	missing := s.KubectlInput(deployment("new", "configmap/nowhere"), "apply", "--dry-run=server", "-f", "-")
	wantWarning(t, missing, "configmap/nowhere does not exist")
	s.Unchanged(before)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

func TestKubectl_DiffShowsNoNoiseFromUs(t *testing.T) {
	t.Parallel()
	s, manifest := kubectled(t)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(s.Counts(), rolls{"deployment/d": 1})
	other := deployment("e", "configmap/c")
	s.KubectlInput(other, "apply", "--server-side", "-f", "-")
	for manifest, server := range map[string]string{manifest: "--server-side=false", other: "--server-side=true"} {
		// The Deployment's controller may write between the two answers that are compared.
		s.Eventually("waiting for a diff of nothing", func() error {
			diff := s.TryKubectlInput(manifest, "diff", server, "-f", "-")
			if strings.Contains(diff.Stdout, "configstamp") {
				t.Fatalf("diff %s of the manifest that was applied shows ours:\n%s", server, diff.Stdout)
			}
			if diff.Code != 0 {
				return fmt.Errorf("diff %s of the manifest that was applied: exit code %d\n%s%s", server, diff.Code, diff.Stdout, diff.Stderr)
			}
			return nil
		})
	}
	changed := s.TryKubectlInput(strings.Replace(manifest, "app:1", "app:2", 1), "diff", "-f", "-")
	if changed.Code != 1 || !strings.Contains(changed.Stdout, "app:2") || strings.Contains(changed.Stdout, "configstamp") {
		t.Errorf("diff of another image: exit code %d\n%s", changed.Code, changed.Stdout)
	}
}

func TestKubectl_EditOfTheSourceRollsAndEditOfTheWorkloadKeepsStamps(t *testing.T) {
	t.Parallel()
	s, _ := kubectled(t)
	before := s.Counts()
	s.KubectlEnv([]string{"KUBE_EDITOR=" + editor(t, `s/k: "1"/k: "2"/`)}, "edit", "configmap/c")
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")

	before = s.Counts()
	wantNoWarnings(t, s.KubectlEnv([]string{"KUBE_EDITOR=" + editor(t, `s/replicas: 1/replicas: 2/`)}, "edit", "deployment/d"))
	s.Unchanged(before)
	wantNoWarnings(t, s.KubectlEnv([]string{"KUBE_EDITOR=" + editor(t, `s/app:1/app:2/`)}, "edit", "deployment/d"))
	s.WantRolls(before, rolls{"deployment/d": 1})
	wantStamp(t, s, "deployment/d", "configmap/c")
}

// editor is a program that edits a file as sed does.
func editor(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "editor")
	harness.Must(t, os.WriteFile(file, []byte("#!/bin/sh\nsed -i -e '"+script+"' \"$1\"\n"), 0o700))
	return file
}

func TestKubectl_WarningsTellWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	manifest := workload("Deployment", "d", "env:\n- {name: A, valueFrom: {configMapKeyRef: {name: c, key: typo}}}\n- {name: B, valueFrom: {secretKeyRef: {name: nowhere, key: k}}}\n")
	for _, args := range [][]string{{"apply", "-f", "-"}, {"replace", "-f", "-"}, {"apply", "--server-side", "--force-conflicts", "-f", "-"}} {
		if args[0] == "replace" || len(args) > 3 {
			manifest = strings.Replace(manifest, "app:1", "app:"+args[0]+fmt.Sprint(len(args)), 1)
		}
		result := s.KubectlInput(manifest, args...)
		wantWarning(t, result, `configmap/c key "typo" does not exist`)
		wantWarning(t, result, "secret/nowhere does not exist")
		manifest = strings.Replace(manifest, "app:"+args[0]+fmt.Sprint(len(args)), "app:1", 1)
	}
	s.Set("configmap/c", "typo", "1")
	s.Set("secret/nowhere", "k", "1")
	wantNoWarnings(t, s.Kubectl("set", "image", "deployment/d", "app=registry.example/app:3"))
}

// Who scales to what is there leaves two entries of one owner in managedFields, of which the API
// server keeps one with the next write. That may be ours, and our token may change no owners.
func TestKubectl_ScaledToWhatIsThere(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Create(workload("StatefulSet", "w", envFrom("configmap/c")))
	before := s.Settled("statefulset/w")
	s.Eventually("having said all that its controller says of a pod", func() error {
		if said := s.Kubectl("get", "statefulset/w", "-o=jsonpath={.status.observedGeneration} {.status.replicas} {.status.updatedReplicas}").Stdout; said != "1 1 1" {
			return errors.New(said)
		}
		return nil
	})
	s.Kubectl("scale", "statefulset/w", "--replicas=1")
	const fields = "-o=jsonpath={.metadata.managedFields}"
	if s.Kubectl("get", "statefulset/w", fields).Stdout == s.Kubectl("patch", "statefulset/w", "-p={}", "--dry-run=server", fields).Stdout {
		t.Error("an empty patch changes no owner, so this shows nothing")
	}
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"statefulset/w": 1})
}
