package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// kept is a namespace in which the policy keeps stamps: one workload of each kind, called w, and a Deployment with a
// baseline.
type kept struct {
	*harness.Space
	t         *testing.T
	product   *harness.Product
	manifests map[string]string // by the name of the workload, without annotations
	before    harness.Counts
	records   map[string][2]map[string]string // the annotations of each workload, and of its template
}

// keeping makes a kept, and stops the webhooks. Where the cluster has no such policies, it checks that an update then
// rolls, and skips the rest.
func keeping(t *testing.T) *kept {
	t.Helper()
	k := &kept{t: t, product: run.Exclusive(t), manifests: map[string]string{}, records: map[string][2]map[string]string{}}
	k.Space = run.Space(t)
	k.Set("configmap/c", "k", "1")
	k.Set("secret/s", "k", "1")
	k.WaitServiceAccount()
	k.stopWebhooks()
	k.add("deployment/adopted", deployment("adopted", "configmap/c"))
	k.startWebhooks()
	wantBaselines(t, k.Space, map[string][]string{"deployment/adopted": {"configmap/c"}})
	for _, kind := range restamped {
		k.add(strings.ToLower(kind)+"/w", workload(kind, "w", envFrom("configmap/c", "secret/s")))
	}
	k.add("job/w", strings.Replace(workload("Job", "w", envFrom("configmap/c", "secret/s")), "suspend: true",
		"suspend: true\n  manualSelector: true\n  selector: {matchLabels: {app: w}}", 1))
	k.before = k.Settled("deployment/adopted", "deployment/w", "statefulset/w", "daemonset/w", "cronjob/w")
	k.stopWebhooks()
	for name := range k.manifests {
		object := k.Get(name)
		k.records[name] = [2]map[string]string{object.GetAnnotations(), harness.TemplateAnnotations(object)}
	}
	if !k.KeepStamps(k.manifests["deployment/w"]) {
		k.Put(k.manifests["deployment/w"])
		k.WantRolls(k.before, rolls{"deployment/w": 1})
		wantStamped(t, k.Space, "deployment/w")
		t.Skip("this version of Kubernetes has no MutatingAdmissionPolicy: the update dropped the stamps, and rolled")
	}
	return k
}

func (k *kept) add(name, manifest string) {
	k.t.Helper()
	k.manifests[name] = manifest
	k.Create(manifest)
}

func (k *kept) stopWebhooks() {
	k.t.Helper()
	for _, webhook := range k.product.Webhooks {
		harness.Must(k.t, webhook.Stop())
	}
}

func (k *kept) startWebhooks() {
	k.t.Helper()
	harness.Must(k.t, k.product.Start(k.t.Context()))
}

// wantKept checks that nothing has rolled, and that our annotations are what they were.
func (k *kept) wantKept(after string) {
	k.t.Helper()
	k.Unchanged(k.before)
	for name, was := range k.records {
		object := k.Get(name)
		for i, now := range []map[string]string{object.GetAnnotations(), harness.TemplateAnnotations(object)} {
			for key, value := range was[i] {
				if strings.Contains(key, "configstamp.dev/") && now[key] != value {
					k.t.Errorf("after %s: %s has %s=%q, want %q", after, name, key, now[key], value)
				}
			}
		}
	}
}

// In whatever way an update drops our annotations while no webhook answers, they stay, and nothing rolls, then or when
// the webhook is back. What was edited meanwhile rolls once.
func TestKeepStamps_WhileNoWebhookAnswers(t *testing.T) {
	k := keeping(t)
	for range 3 {
		for _, manifest := range k.manifests {
			k.PutAs("", manifest)
		}
	}
	k.wantKept("updates")

	for name := range k.manifests {
		k.Kubectl("patch", name, "--type=merge", "-p", `{"metadata":{"annotations":null}}`)
		if name == "deployment/adopted" {
			continue
		}
		template := "/spec/template"
		if name == "cronjob/w" {
			template = "/spec/jobTemplate/spec/template"
		}
		for _, dropped := range []string{"/metadata/annotations/secret.configstamp.dev~1s", "/metadata/annotations"} {
			k.Kubectl("patch", name, "--type=json", "-p", fmt.Sprintf(`[{"op": "remove", "path": %q}]`, template+dropped))
		}
	}
	k.wantKept("patches")

	// The manager of an exported manifest owns the stamps in it, and the next manifest prunes them.
	manifest := k.manifests["deployment/w"]
	key := harness.StampKey("configmap/c")
	for _, exported := range []map[string]string{{key: k.records["deployment/w"][1][key]}, k.records["deployment/w"][1]} {
		var stamps []string
		for key, value := range exported {
			stamps = append(stamps, fmt.Sprintf("%s: %q", key, value))
		}
		for _, annotations := range []string{"annotations: {" + strings.Join(stamps, ", ") + "}, ", ""} {
			k.KubectlInput(strings.Replace(manifest, "metadata: {labels:", "metadata: {"+annotations+"labels:", 1), "apply", "--server-side", "--force-conflicts", "-f", "-")
		}
		k.wantKept(fmt.Sprintf("pruning %d stamps", len(exported)))
	}

	k.Set("configmap/c", "k", "2")
	k.Put(manifest)
	k.wantKept("an edit")
	k.startWebhooks()
	rolling := []string{"deployment/adopted", "deployment/w", "statefulset/w", "daemonset/w", "cronjob/w"}
	k.WantRolls(k.before, each(rolling, 1))
	for _, name := range rolling {
		wantStamp(t, k.Space, name, "configmap/c")
	}
}

// An undo brings its own revision back, with what that has, as its pods may still run.
func TestKeepStamps_AnUndo(t *testing.T) {
	k := keeping(t)
	k.startWebhooks()
	rolling := []string{"deployment/w", "statefulset/w", "daemonset/w"}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		k.Put(strings.Replace(workload(kind, "w", envFrom("configmap/c", "secret/s", "configmap/more?")), "app:1", "app:2", 1))
	}
	k.WantRolls(k.before, each(rolling, 1))
	k.stopWebhooks()
	before := k.Counts()
	for _, name := range rolling {
		k.Kubectl("rollout", "undo", name)
	}
	k.WantRollsBack(before, each(rolling, 1))
	for _, name := range rolling {
		if now, was := harness.TemplateAnnotations(k.Get(name)), k.records[name][1]; !maps.Equal(now, was) {
			t.Errorf("the template of %s has %v, want %v", name, now, was)
		}
	}
}

// A source that is no longer used keeps its stamp, to no effect, until the template changes while the webhook answers.
// Whoever opts a workload out can remove the stamps in the same update, and whoever uninstalls can do so later.
func TestKeepStamps_WhatIsRemoved(t *testing.T) {
	k := keeping(t)
	k.Put(strings.Replace(k.manifests["cronjob/w"], "        metadata: {labels: {app: w}}\n", "", 1)) // which a CronJob's template does not need
	wantStamped(t, k.Space, "cronjob/w", "configmap/c", "secret/s")
	k.Put(deployment("w", "configmap/c"))
	k.WantRolls(k.before, rolls{"deployment/w": 1, "cronjob/w": 1})
	wantStamped(t, k.Space, "deployment/w", "configmap/c", "secret/s")
	k.Put(labelled(k.manifests["statefulset/w"], "disabled"))
	wantStamped(t, k.Space, "statefulset/w")

	k.startWebhooks()
	before := k.Counts()
	k.Set("secret/s", "k", "2")
	k.WantRolls(before, rolls{"daemonset/w": 1, "cronjob/w": 1})
	k.Put(strings.Replace(deployment("w", "configmap/c"), "app:1", "app:2", 1))
	wantStamps(t, k.Space, "deployment/w", "configmap/c")

	plain := run.PlainSpace(t)
	plain.Set("configmap/c", "k", "1")
	plain.Create(labelled(deployment("w", "configmap/c"), "enabled"))
	k.stopWebhooks()
	plain.Put(labelled(deployment("w", "configmap/c"), "enabled"))
	wantStamps(t, plain, "deployment/w", "configmap/c")
	plain.Put(deployment("w", "configmap/c"))
	wantStamped(t, plain, "deployment/w")

	k.Kubectl("delete", "-f", "../deploy/keep-stamps.yaml")
	k.Eventually("removing stamps without the policy", func() error {
		if stamps := harness.Stamps(k.Put(k.manifests["daemonset/w"])); len(stamps) > 0 {
			return fmt.Errorf("there are %v", stamps)
		}
		return nil
	})
}

// While the webhook answers, it decides as it does without the policy.
func TestKeepStamps_WhileTheWebhookAnswers(t *testing.T) {
	k := keeping(t)
	k.startWebhooks()
	for range 6 { // from the fifth on, the webhook would report it
		for _, manifest := range k.manifests {
			k.PutAs("", manifest)
		}
	}
	k.wantKept("updates")
	k.WantNoNote("deployment/w", "ChecksumsTakenAway")

	k.SetPolicy("namespace", settings{"pause": "true"})
	k.Quiet()
	k.Set("configmap/c", "k", "2")
	for _, manifest := range k.manifests {
		k.PutAs("", manifest)
	}
	k.wantKept("updates during a pause")
	for _, name := range []string{"w", "adopted"} { // w reads one source less
		k.Put(strings.Replace(deployment(name, "configmap/c"), "app:1", "app:2", 1))
		wantStamps(t, k.Space, "deployment/"+name, "configmap/c")
		if baseline := harness.Baseline(k.Get("deployment/" + name)); len(baseline) > 0 {
			t.Errorf("deployment/%s has the baseline %v after a rollout, want none", name, baseline)
		}
	}
	k.WantRolls(k.before, rolls{"deployment/w": 1, "deployment/adopted": 1})
}
