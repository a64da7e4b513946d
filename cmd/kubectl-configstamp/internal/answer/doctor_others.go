package answer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
	"github.com/configstamp/configstamp/internal/reason"
)

// selects reports whether an entry of a webhook configuration is asked about updates of a
// workload, as far as its rules and selectors tell. Its matchConditions may say no.
func (v *visit) selects(entry *seen.Webhook, w *seen.Workload) bool {
	asks := func(rule admissionregistrationv1.RuleWithOperations) bool {
		return has(rule.Operations, admissionregistrationv1.Update, admissionregistrationv1.OperationAll) &&
			has(rule.APIGroups, w.Kind.Group, "*") && has(rule.Resources, w.Kind.Resource, "*", "*/*") &&
			(rule.Scope == nil || *rule.Scope != admissionregistrationv1.ClusterScope)
	}
	return slices.ContainsFunc(entry.Rules, asks) && matches(entry.ObjectSelector, w.Object.Labels) && v.selectsNamespace(entry, w.Namespace)
}

func (v *visit) selectsNamespace(entry *seen.Webhook, name string) bool {
	of := maps.Clone(v.Namespaces[name].Labels)
	if of == nil {
		of = map[string]string{}
	}
	of[corev1.LabelMetadataName] = name
	return matches(entry.NamespaceSelector, of)
}

func has[T comparable](all []T, wanted ...T) bool {
	return slices.ContainsFunc(wanted, func(one T) bool { return slices.Contains(all, one) })
}

// matches reports whether a selector selects what has some labels; none selects all, as the
// API server has it.
func matches(selector *metav1.LabelSelector, of map[string]string) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(of))
}

// otherWebhooks looks for those that are asked about the same workloads, and asked again
// when ours has changed something.
func (v *visit) otherWebhooks() string {
	for i := range v.Webhooks.All {
		entry := &v.Webhooks.All[i]
		again := entry.ReinvocationPolicy != nil && *entry.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
		if entry.Ours() || !again {
			continue
		}
		count := 0
		v.served(func(w *seen.Workload) {
			if v.selects(entry, w) {
				count++
			}
		})
		if count > 0 {
			v.tell(Note, "", "mutatingwebhookconfiguration/"+entry.Configuration, fmt.Sprintf("its webhook %s may change %s that configstamp stamps, and is asked again after us: events say whether the two conflict", entry.Name, counted(count, "workload")),
				"kubectl get events -A --field-selector reason="+reason.RecordingBlocked.Event())
		}
	}
	return v.unseen(v.Webhooks.Looked, listOfWebhooks)
}

// events looks for what the controller has told of late, of which somebody must know.
func (v *visit) events() string {
	remedies := map[string]string{
		reason.ChecksumsTakenAway.Event(): "kubectl label --overwrite {of} " + checksum.InjectLabel + "=" + checksum.InjectDisabled,
		reason.RecordingBlocked.Event():   "kubectl rollout restart {of}",
		reason.Blocked.Event():            "kubectl rollout restart {of}",
		reason.Retry.Event():              v.logs("controller"),
		reason.PodsUnseen.Event():         v.install(),
	}
	told := map[string]bool{}
	for i := range v.Events { // the newest first
		event := &v.Events[i]
		about := strings.ToLower(event.Kind) + "/" + event.Name
		remedy, wanted := remedies[event.Reason]
		key := event.Reason + " " + event.Namespace + " " + about
		if !wanted || told[key] {
			continue
		}
		told[key] = true
		v.tell(Warning, event.Namespace, about, fmt.Sprintf("%s, %s ago: %s", event.Reason, Ago(v.now, event.Last), firstSentence(event.Message)), remedy)
	}
	return v.unlooked("events")
}

// peers looks for other products that restart workloads, for workloads that both look after,
// and for annotations for such a product that do not count.
func (v *visit) peers() string {
	v.dialects()
	for i := range v.Peers.All {
		peer := &v.Peers.All[i]
		if peer.Replicas == 0 {
			continue
		}
		both := 0
		v.served(func(w *seen.Workload) {
			foreign := checksum.Translate([]checksum.Dialect{checksum.Reloader}, w.Namespace, w.Object.Annotations, w.Object.TemplateAnnotations())
			if peer.Product == "wave" {
				foreign = checksum.Translate([]checksum.Dialect{checksum.Wave}, w.Namespace, w.Object.Annotations, nil)
			}
			if peer.All || foreign.OptsIn() {
				both++
			}
		})
		about := "deployment/" + peer.Name
		if both > 0 {
			v.tell(Warning, peer.Namespace, about, fmt.Sprintf("%s runs beside configstamp, and both look after %s: one edit may restart them twice. Stop %s when no workload needs it any more", peer.Product, counted(both, "workload"), peer.Product), "kubectl scale {of} --replicas=0")
			continue
		}
		v.tell(Note, peer.Namespace, about, peer.Product+" runs beside configstamp; no workload that was checked is looked after by both", "kubectl get {of} -o wide")
	}
	return cmp.Or(v.unseen(v.Peers.Looked, "deployments.apps in all namespaces"), v.lists(v.kinds()...))
}
