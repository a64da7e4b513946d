package seen

import (
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Checkup is what doctor looks at: configstamp's own objects, what may be in their way, and
// the fleet. Of each part Looked tells that the API server has answered; else nothing is
// known of it.
type Checkup struct {
	*Fleet
	// Namespace is the one whose workloads and sources are looked at, "" for all.
	Namespace string
	// Name is what configstamp's own objects are called, or what their names begin with.
	Name   string
	Server Server
	// Webhooks stamp. Impact are those that warn of what an edit rolls out, and everybody
	// else's that only allow or deny.
	Webhooks, Impact Webhooks
	Endpoints        Endpoints
	Certificates     []Certificate
	Lease            Lease
	// Key is the Secret of the digest keys, by its metadata.
	Key   Source
	Peers Peers
	// Gaps are what could not be looked at.
	Gaps []Gap
}

// Missed reports whether something could not be looked at whose name begins with one of
// some words, such as "secrets".
func (c *Checkup) Missed(words ...string) (why string, missed bool) {
	for _, gap := range c.Gaps {
		for _, word := range words {
			if gap.What == word || strings.HasPrefix(gap.What, word+" ") {
				return gap.String(), true
			}
		}
	}
	return "", false
}

// Server is the version of the API server.
type Server struct {
	Looked bool
	// Text is its gitVersion, such as v1.37.1.
	Text         string
	Major, Minor int
}

// Webhooks are the entries of all MutatingWebhookConfigurations, or of all
// ValidatingWebhookConfigurations: such an entry reads as a mutating one does.
type Webhooks struct {
	Looked bool
	All    []Webhook
}

// Webhook is one entry of a webhook configuration.
type Webhook struct {
	Configuration string
	admissionregistrationv1.MutatingWebhook
}

// Ours reports whether an entry is of an installation of configstamp. deploy/reached.sh makes
// one that is not, for some seconds.
func (w *Webhook) Ours() bool {
	entry, its := strings.CutSuffix(w.Name, ".configstamp.dev")
	return its && entry != "reached"
}

// Selects reports whether an entry selects anything: the chart leaves one that is off
// where it is, with a selector that nothing meets.
func (w *Webhook) Selects() bool {
	return w.NamespaceSelector == nil || !slices.ContainsFunc(w.NamespaceSelector.MatchExpressions, func(one metav1.LabelSelectorRequirement) bool {
		return one.Key == corev1.LabelMetadataName && one.Operator == metav1.LabelSelectorOpDoesNotExist
	})
}

// Installation is the namespace of the Service that an entry calls; "" for one that is called
// by a URL, of which nobody can tell whose it is.
func (w *Webhook) Installation() string {
	if w.ClientConfig.Service == nil {
		return ""
	}
	return w.ClientConfig.Service.Namespace
}

// Endpoints counts what stands behind the webhook's Service. Impact counts those that are
// ready, and have the port of impact warnings.
type Endpoints struct {
	Looked             bool
	Ready, All, Impact int
}

// Certificate is one that cert-manager looks after, in configstamp's namespace.
type Certificate struct {
	Name string
	// Ends is status.notAfter, zero when there is none yet.
	Ends time.Time
	// Fault is what its condition Ready says when it is not, "" when it is.
	Fault string
}

// Lease is the leader's.
type Lease struct {
	Looked, Exists bool
	// Holder is who leads, "" is nobody. Renewed is when that was last said.
	Holder  string
	Renewed time.Time
}

// Peers are other products that restart workloads when their configuration changes.
type Peers struct {
	Looked bool
	All    []Peer
}

// Peer is a Deployment of such a product.
type Peer struct {
	Namespace, Name string
	// Product is Reloader or wave, as checksum.Dialect has it.
	Product string
	// Replicas is spec.replicas.
	Replicas int32
	// All tells that it looks after every workload, annotated or not.
	All bool
}
