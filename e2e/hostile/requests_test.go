package hostile

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/harness"
)

// workloads are the kinds that a fleet has.
func (r *raid) kind() string {
	return pick(r, "Deployment", "Deployment", "Deployment", "StatefulSet", "DaemonSet", "CronJob")
}

// patch sends a merge patch, under the name of a field manager.
func (r *raid) patch(kind, name, manager string, patch fields, subresources ...string) {
	body, err := json.Marshal(patch)
	if err != nil {
		panic(err)
	}
	options := metav1.PatchOptions{FieldManager: manager}
	if r.IntN(4) == 0 {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = r.to(kind).Patch(r.ctx, name, types.MergePatchType, body, options, subresources...)
	r.heard(err)
}

// churn creates, changes, scales, applies and deletes small workloads.
func (r *raid) churn() {
	kind := r.kind()
	name := r.one(strings.ToLower(kind), plains/4)
	switch r.IntN(8) {
	case 0:
		r.remove(kind, name)
	case 1:
		r.patch("Deployment", r.one("deployment", plains/4), "", fields{"spec": fields{"replicas": r.IntN(100_000)}}, "scale")
	case 2:
		object := unstructured.Unstructured{Object: r.workload(kind, name, r.small(), fields{})}
		object.SetGroupVersionKind(resources()[kind].GroupVersion().WithKind(kind))
		object.SetName(name)
		_, err := r.to(kind).Apply(r.ctx, name, &object, metav1.ApplyOptions{FieldManager: r.one("manager", 5), Force: true})
		r.heard(err)
	case 3:
		r.patch(kind, name, "", fields{"metadata": fields{"labels": fields{harness.InjectLabel: pick[any](r, "enabled", "disabled", "no", nil)}}})
	case 4:
		r.patch(kind, name, "", fields{"spec": pick(r, fields{"paused": r.IntN(2) == 0}, fields{"minReadySeconds": r.IntN(1000)}, fields{"suspend": true})})
	default:
		r.put(kind, name, r.workload(kind, name, r.small(), fields{"round": fmt.Sprint(r.IntN(1 << 30))}))
	}
}

// order asks for re-admissions, as configstamp itself does.
func (r *raid) order() {
	kind, name := "Deployment", r.one("deployment", plains/4)
	if r.IntN(10) == 0 {
		kind, name = "Deployment", r.one("big", bigs)
	}
	r.patch(kind, name, pick(r, "configstamp", "configstamp-record", "configstamp-accept"), fields{})
}

// settings writes annotations that somebody reads, with values that nobody expects.
func (r *raid) settings() {
	annotations := fields{}
	for range 1 + r.IntN(4) {
		name := pick(r, "only", "ignore", "ignore-keys", "also", "restart-on", "mode", "pause", "window", "min-interval", "order", "soak", "resume", "adopt", "pin")
		annotations["configstamp.dev/"+name] = r.value()
		dialect := pick(r, "reloader.stakater.com/auto", "configmap.reloader.stakater.com/reload", "secret.reloader.stakater.com/reload", "reloader.stakater.com/search",
			"configmaps.exclude.reloader.stakater.com/reload", "wave.pusher.com/update-on-config-change", "wave.pusher.com/extra-configmaps", "wave.pusher.com/extra-secrets")
		annotations[dialect] = r.value()
	}
	kind := pick(r, r.kind(), "ConfigMap", "Secret")
	name := r.one(strings.ToLower(kind), plains/4)
	if kind == "ConfigMap" || kind == "Secret" {
		name = pick(r, "hot", r.one("wide", wides), r.one("many", manies))
	}
	r.patch(kind, name, "", fields{"metadata": fields{"annotations": annotations}})
}

// value is what a setting may hold: right, wrong, or as long as it gets.
func (r *raid) value() any {
	switch r.IntN(10) {
	case 0:
		return nil
	case 1:
		return r.patterns("configmap/many-")
	case 2:
		return strings.Repeat(pick(r, ",", "a,", "configmap/many-1,", "*", "(", "[", "Mon-Fri 22:00-04:00;", "\u0000", "é"), r.IntN(10_000))
	case 3:
		return pick(r, "\x00\x01\x1b[31m", "\u202eevil", "a\nWarning: b", "$(reboot)", "`reboot`", "<script>", "{\"a\":", "%s%s%n")
	case 4:
		return pick(r, "many-.*", "(a{1000}){1000}", "(.*)(.*)(.*)*", strings.Repeat("(a|", 1000)+strings.Repeat(")", 1000))
	case 5:
		return pick(r, "9223372036854775808", "-1ns", "1h", "2999-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "1e999")
	case 6:
		return "configmap/hot,configmap/wide-1,secret/many-" + fmt.Sprint(r.IntN(manies))
	default:
		return pick(r, "true", "false", "restart", "observe", "everything", "startup", "baseline", "", "1", "1ms")
	}
}

// pins makes workloads that pin large sources, deletes snapshots, and forges some.
func (r *raid) pins() {
	snapshots := metav1.ListOptions{LabelSelector: "configstamp.dev/snapshot=true"}
	switch r.IntN(6) {
	case 0:
		r.heard(r.to("ConfigMap").DeleteCollection(r.ctx, metav1.DeleteOptions{}, snapshots))
	case 1:
		r.put("ConfigMap", fmt.Sprintf("hot-%020x", r.IntN(100)), fields{"metadata": fields{"labels": fields{"configstamp.dev/snapshot": "true"}}, "immutable": r.IntN(2) == 0, "data": fields{"k": "forged"}})
	default:
		name := r.one("pinned", plains/4)
		annotations := fields{"configstamp.dev/pin": "true", "round": fmt.Sprint(r.IntN(1 << 30))}
		r.put("Deployment", name, r.workload("Deployment", name, r.small(), annotations))
	}
}

// copy has a ConfigMap of the neighbour's name, with other content, for workloads that
// never become healthy with it.
func (r *raid) copy() {
	if r.IntN(10) > 0 {
		r.put("ConfigMap", "settings", fields{"data": fields{"MESSAGE": pick(r, "", "bad", "message 0")}})
		return
	}
	name := r.one("copy", 3)
	uses := fields{"containers": []any{fields{"name": "app", "image": "none", "envFrom": []any{fields{"configMapRef": fields{"name": "settings"}}}}}}
	r.put("Deployment", name, r.workload("Deployment", name, uses, fields{}))
}

// pod makes pods that a selector of the neighbour's matches, and that claim to be
// those of its workloads.
func (r *raid) pod() {
	name := r.one("pod", plains)
	if r.IntN(4) == 0 {
		r.remove("Pod", name)
		return
	}
	object := r.workload("Pod", r.one("web", 4), r.small(), fields{"configstamp.dev/pins": pick[any](r, "{}", "{", `{"configmap/hot":"hot-0"}`, strings.Repeat("{", 10_000))})
	if metadata, ok := object["metadata"].(fields); ok && r.IntN(2) == 0 {
		owner := fields{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": r.one("web", 4), "uid": fmt.Sprintf("00000000-0000-0000-0000-%012d", r.IntN(9)), "controller": true}
		metadata["ownerReferences"] = []any{owner}
	}
	r.put("Pod", name, object)
}
