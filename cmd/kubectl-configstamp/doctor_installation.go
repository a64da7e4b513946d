package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/dynamic"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// readAll reads the objects of a resource in a namespace ("" for all, or for none) into a type.
func readAll[T any](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (all []T, err error) {
	list, err := client.Resource(resource).Namespace(namespace).List(ctx, options)
	switch {
	case apierrors.IsNotFound(err): // the cluster does not serve the resource
		return nil, nil
	case err != nil:
		return nil, err
	}
	all = make([]T, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &all[i]); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", resource.Resource, list.Items[i].GetName(), err)
		}
	}
	return all, nil
}

// webhooks are the entries of the webhook configurations of this installation that select anything.
type webhooks struct {
	// mutating entries stamp workloads or pin Pods, validating ones warn of what an edit rolls out.
	mutating, validating []webhookEntry
	// elsewhere is the namespace of another installation, "" if there is none.
	elsewhere string
	// unlisted says why they could not be read.
	unlisted error
}

// webhookEntry is an entry of a webhook configuration. Those of a ValidatingWebhookConfiguration have the same fields.
type webhookEntry struct {
	about string
	// injected says that cert-manager writes the caBundle.
	injected bool
	admissionregistrationv1.MutatingWebhook
}

const (
	mutatingKind   = "mutatingwebhookconfiguration"
	validatingKind = "validatingwebhookconfiguration"
)

// readWebhooks reads the webhook configurations, and what they say about the installation.
func (d *doctor) readWebhooks(ctx context.Context) {
	d.name = "configstamp"
	for _, kind := range []string{mutatingKind, validatingKind} {
		all, err := readAll[admissionregistrationv1.MutatingWebhookConfiguration](ctx, d.client, admissionregistrationv1.SchemeGroupVersion.WithResource(kind+"s"), "", metav1.ListOptions{})
		d.unlisted = errors.Join(d.unlisted, err)
		for i := range all {
			_, injected := all[i].Annotations["cert-manager.io/inject-ca-from"]
			for _, w := range all[i].Webhooks {
				switch w := (webhookEntry{kind + "/" + all[i].Name, injected, w}); {
				case !d.isOurs(&w):
				case kind == mutatingKind:
					d.mutating = append(d.mutating, w)
				default:
					d.validating = append(d.validating, w)
				}
			}
		}
	}
}

// isOurs reports whether an entry is of this installation and selects anything: the chart leaves one that is off in place.
// deploy/reached.sh makes an entry called reached for some seconds.
func (d *doctor) isOurs(w *webhookEntry) bool {
	if name, its := strings.CutSuffix(w.Name, ".configstamp.dev"); !its || name == "reached" {
		return false
	}
	if service := w.ClientConfig.Service; service != nil && service.Namespace != d.installation {
		d.elsewhere = service.Namespace
		return false
	} else if service != nil {
		d.name = service.Name
	}
	if w.NamespaceSelector == nil {
		return true
	}
	for _, expression := range w.NamespaceSelector.MatchExpressions {
		switch named := expression.Key == corev1.LabelMetadataName; {
		case named && expression.Operator == metav1.LabelSelectorOpDoesNotExist:
			return false
		case named && expression.Operator == metav1.LabelSelectorOpIn:
			d.settings.Namespaces = expression.Values
		case named && expression.Operator == metav1.LabelSelectorOpNotIn:
			d.settings.Excluded = expression.Values
		}
	}
	return true
}

func (d *doctor) webhook(ctx context.Context) error {
	d.readWebhooks(ctx)
	if d.unlisted == nil && len(d.mutating) == 0 {
		text, remedy := "it does not exist, so no webhook is called: nothing is stamped, and no edit rolls anything out", d.install()
		if d.elsewhere != "" {
			text, remedy = text+". configstamp is installed in namespace "+d.elsewhere, "kubectl configstamp doctor --configstamp-namespace "+d.elsewhere
		}
		d.find(isError, "", mutatingKind+"/"+d.name, text, remedy)
	}
	if len(d.mutating) > 0 && d.mutating[0].ClientConfig.Service == nil { // it is called by a URL
		return d.unlisted
	}
	all, err := readAll[discoveryv1.EndpointSlice](ctx, d.client, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), d.installation,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + d.name})
	ready := 0
	for i := range all {
		for _, endpoint := range all[i].Endpoints {
			if is := endpoint.Conditions.Ready; is == nil || *is { // as discovery/v1 has it
				ready++
			}
		}
	}
	switch {
	case err != nil:
	case ready == 0:
		d.find(isError, d.installation, "service/"+d.name, "no webhook is ready: it has no ready endpoint. "+d.whileAway(), "kubectl get pods -n "+d.installation+" -o wide")
	case ready == 1:
		d.find(isNote, d.installation, "service/"+d.name, "only one webhook is ready: no other can take over", "kubectl get deployment "+d.name+" -n "+d.installation)
	}
	return errors.Join(d.unlisted, err)
}

// whileAway says what follows if no webhook answers.
func (d *doctor) whileAway() string {
	if slices.ContainsFunc(d.mutating, func(w webhookEntry) bool {
		return w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Fail
	}) {
		return "With failurePolicy Fail, workloads that are opted in cannot be created or changed until it is back."
	}
	return "With failurePolicy Ignore, the API server continues without it: nothing is stamped, and no edit rolls anything out."
}

// expiresSoon is as in the alert ConfigstampCertificateExpiresSoon.
const expiresSoon = 48 * time.Hour

// certificate looks at the authorities by which the API server trusts the webhooks.
func (d *doctor) certificate(context.Context) error {
	for i := range d.mutating {
		d.authority(isError, &d.mutating[i], d.whileAway())
	}
	for i := range d.validating {
		d.authority(isWarning, &d.validating[i], "Users who edit a ConfigMap or Secret get no warning about what rolls out.")
	}
	return d.unlisted
}

// authority looks at the certificate authority of an entry. most is the weight of a finding at most.
func (d *doctor) authority(most weight, w *webhookEntry, then string) {
	var end time.Time
	for block, rest := pem.Decode(w.ClientConfig.CABundle); block != nil; block, rest = pem.Decode(rest) {
		if authority, err := x509.ParseCertificate(block.Bytes); err == nil && authority.NotAfter.After(end) {
			end = authority.NotAfter
		}
	}
	weight, text, remedy := most, "", d.logs("webhook") // which keeps the caBundle, unless cert-manager does
	if w.injected {
		remedy = "kubectl describe certificates -n " + d.installation
	}
	switch left := end.Sub(d.now); {
	case end.IsZero():
		text = "its entries have no certificate as caBundle, so the API server does not trust the webhook. " + then
	case left < 0:
		text = "the certificate authority in its caBundle expired " + duration.HumanDuration(-left) + " ago. " + then
	case left < expiresSoon:
		weight, text = isWarning, "the certificate authority in its caBundle expires in "+duration.HumanDuration(left)+", and should already have been renewed"
	default:
		return
	}
	d.find(weight, "", w.about, text, remedy)
}

// leadsFor is how old the leader's last renewal may be. It renews every 2 s.
const leadsFor = time.Minute

func (d *doctor) leader(ctx context.Context) error {
	name := d.name + "-controller"
	object, err := d.client.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(d.installation).Get(ctx, name, metav1.GetOptions{})
	var lease coordinationv1.Lease
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &lease)
	}
	text := ""
	switch spec := lease.Spec; {
	case apierrors.IsNotFound(err):
		text = "it does not exist, so no controller has ever led"
	case err != nil:
		return err
	case spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil:
		text = "no controller leads"
	case d.now.Sub(spec.RenewTime.Time) > leadsFor:
		text = "its holder " + *spec.HolderIdentity + " has not renewed it for " + duration.HumanDuration(d.now.Sub(spec.RenewTime.Time)) + ", so no controller leads"
	}
	if text != "" {
		d.find(isError, d.installation, "lease/"+name, text+": deploys are stamped, but no edit rolls anything out", d.logs("controller"))
	}
	return nil
}

// refusedFor is how long an event about refused reports counts. The leader emits it once an hour.
const refusedFor = 2 * time.Hour

// reportsWritten looks whether the leader can write ConfigRollouts.
func (d *doctor) reportsWritten(ctx context.Context) error {
	events, err := readAll[corev1.Event](ctx, d.client, corev1.SchemeGroupVersion.WithResource("events"), d.installation, metav1.ListOptions{FieldSelector: "reason=" + reason.ReportRefused.Event()})
	for i := range events {
		last := events[i].LastTimestamp.Time
		if series := events[i].Series; series != nil {
			last = series.LastObservedTime.Time
		} else if last.IsZero() {
			last = events[i].EventTime.Time
		}
		if d.now.Sub(last) < refusedFor {
			d.find(isWarning, d.installation, "deployment/"+d.name, events[i].Reason+" at "+at(last)+": "+events[i].Message, d.logs("controller"))
		}
	}
	return err
}

// defaults looks at what counts in the whole cluster.
func (d *doctor) defaults(context.Context) error {
	const about, show = "configmap/" + settingsName, "kubectl get {of} -o yaml"
	if d.settings.Absent {
		d.find(isNote, d.installation, about, "it does not exist (settings.published is false, or the chart is older), so this plugin assumes the program's defaults", d.install())
	}
	if pause := d.settings.Policy.Pause; pause.On && (pause.Until.IsZero() || pause.Until.After(d.now)) {
		d.find(isWarning, d.installation, about, "--pause holds every rollout in the cluster", show)
	}
	if d.settings.Policy.Observe {
		d.find(isNote, d.installation, about, "--mode=observe: nothing rolls in the cluster unless a workload or Namespace says otherwise", show)
	}
	if d.settings.Absent {
		return nil
	}
	return errorsOf(d.settings.Unread)
}

// dryRun asks the webhook about one workload that is served.
func (d *doctor) dryRun(ctx context.Context) error {
	var w *checkedWorkload
	if unlooked := d.served(func(served *checkedWorkload) { w = cmp.Or(w, served) }); w == nil {
		if unlooked == nil {
			about := "the cluster"
			if d.namespace != "" {
				about = "namespace/" + d.namespace
			}
			d.find(isNote, "", about, "no workload in it is opted in, so the webhook was not asked. To opt a namespace in (nothing restarts):", "kubectl label namespace NAME --overwrite "+optIn)
		}
		return unlooked
	}
	t, err := d.read(w.Namespace, typeOf(w.Kind), w.Name)
	if err != nil {
		return err
	}
	_, warnings, err := t.patch(ctx, types.MergePatchType, []byte("{}"), patchOptions(serverDryRun, checksum.RollingManager))
	answer := outcomeIn(warnings)
	if err != nil {
		answer = refusedDryRun(w.Namespace, err)
	}
	switch {
	case answer.Lasting && apierrors.IsForbidden(err):
		return errors.New(answer.Sentence)
	case err != nil:
		d.find(isWarning, w.Namespace, w.Text(), "the webhook cannot be asked: "+answer.Sentence, "kubectl patch {of} --field-manager="+checksum.RollingManager+" --dry-run=server -p '{}'")
	case answer.Code == reason.NoOutcome:
		d.find(isError, "", mutatingKind+"/"+d.name, "the webhook gave no answer to a dry run of "+w.Text()+" in namespace "+w.Namespace+": it is not called, or does not answer. "+d.whileAway(), d.logs("webhook"))
	case slices.Contains([]reason.Outcome{reason.OutcomeDeferred, reason.OutcomeKeyLost, reason.OutcomeDeclined, reason.OutcomeOptedOut, reason.OutcomeOversize}, answer.Code):
		d.find(isWarning, w.Namespace, w.Text(), "the webhook answers "+answer.Code.String()+": "+answer.Sentence, "kubectl configstamp why {of}")
	}
	return nil
}
