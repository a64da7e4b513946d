package answer

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// least is the oldest Kubernetes that has what the chart needs (ValidatingAdmissionPolicy).
const (
	leastMajor = 1
	leastMinor = 30
)

func (v *visit) server() string {
	server := v.Server
	if !server.Looked {
		return v.unseen(false, "the version of the API server")
	}
	if server.Major < leastMajor || server.Major == leastMajor && server.Minor < leastMinor {
		v.tell(Error, "", "the API server", fmt.Sprintf("it is %s, and configstamp needs Kubernetes %d.%d or newer", server.Text, leastMajor, leastMinor), "kubectl version")
	}
	return ""
}

const listOfWebhooks = "mutatingwebhookconfigurations.admissionregistration.k8s.io"

// entries are those of the webhooks of this installation.
func (v *visit) entries() []*seen.Webhook { return v.ours(v.Webhooks.All) }

func (v *visit) ours(all []seen.Webhook) (ours []*seen.Webhook) {
	for i := range all {
		if w := &all[i]; w.Ours() && (w.Installation() == v.Settings.Installation || w.Installation() == "") {
			ours = append(ours, w)
		}
	}
	return ours
}

// webhook looks whether there is one, and something behind it.
func (v *visit) webhook() string {
	ours := v.entries()
	if v.Webhooks.Looked && len(ours) == 0 && v.noWebhook() {
		return ""
	}
	service := "service/" + v.Name
	switch e := v.Endpoints; {
	case !e.Looked, len(ours) > 0 && ours[0].ClientConfig.Service == nil:
	case e.Ready == 0:
		v.unreached = true
		v.own(Error, service, fmt.Sprintf("no webhook is ready (0 of %d endpoints). %s", e.All, whileAway(ours)), "kubectl get pods {ns} -o wide")
	case e.Ready == 1:
		v.own(Note, service, fmt.Sprintf("only one webhook is ready (of %s): no other can take over", counted(e.All, "endpoint")), "kubectl get deployment "+v.Name+" {ns}")
	}
	if len(ours) > 0 {
		v.unselected(ours)
		v.pods(ours)
	}
	return cmp.Or(v.unseen(v.Webhooks.Looked, listOfWebhooks), v.unseen(v.Endpoints.Looked, "endpointslices.discovery.k8s.io"))
}

// noWebhook tells that there is none of this installation, and reports whether that says
// all.
func (v *visit) noWebhook() (all bool) {
	own := v.Settings.Installation
	for i := range v.Webhooks.All {
		if w := &v.Webhooks.All[i]; w.Ours() {
			elsewhere := w.Installation()
			v.tell(Error, "", "namespace/"+own, "configstamp is not installed there, but in namespace "+elsewhere, "kubectl configstamp doctor --configstamp-namespace "+elsewhere)
			v.over = "configstamp is not installed in namespace " + own
			return true
		}
	}
	if v.Lease.Looked && !v.Lease.Exists && v.Key.Looked && !v.Key.Exists {
		v.tell(Error, "", "namespace/"+own, "configstamp is not installed there or anywhere else: no webhook, no lease, no key", v.install()+" --create-namespace")
		v.over = "configstamp is not installed in namespace " + own
		return true
	}
	v.unreached = true
	v.tell(Error, "", "mutatingwebhookconfiguration/"+v.Name, "it does not exist, so no webhook is called: nothing is stamped, and no edit rolls anything out", v.install())
	return false
}

// whileAway says what it means that no webhook answers.
func whileAway(ours []*seen.Webhook) string {
	for _, w := range ours {
		if w.FailurePolicy != nil && *w.FailurePolicy == "Fail" {
			return "With failurePolicy Fail nobody can create or change workloads that are opted in until it is back."
		}
	}
	if len(ours) == 0 {
		return "Meanwhile nothing is stamped, and no edit rolls anything out."
	}
	return "With failurePolicy Ignore the API server goes on without it and tells nobody: nothing is stamped, and no edit rolls anything out."
}

// unselected looks for workloads that are served, and that no entry of ours selects.
func (v *visit) unselected(ours []*seen.Webhook) {
	v.served(func(w *seen.Workload) {
		if !slices.ContainsFunc(ours, func(e *seen.Webhook) bool { return v.selects(e, w) }) {
			v.explained[w.Ref] = true
			v.tell(Warning, w.Namespace, w.Text(), "it is opted in, but no entry of the webhook configuration selects it, so it is never stamped", v.install())
		}
	})
}

// dryRun looks at what the webhook has said of each workload that is served.
func (v *visit) dryRun() string {
	asked, refused, explained := 0, "", 0
	var silent []string
	v.served(func(w *seen.Workload) {
		asked++
		outcome := v.Outcome(w)
		switch {
		case outcome.Code == seen.Unknown && outcome.Cause == seen.NoRight:
			refused = outcome.Sentence
		case outcome.Code == seen.Unknown && (v.unreached || v.explained[w.Ref]):
			explained++
		case outcome.Code == seen.Unknown && outcome.Cause == seen.Silence:
			silent = append(silent, w.Text()+" in namespace "+w.Namespace)
		default:
			v.answered(w, outcome)
		}
	})
	if v.silent = len(silent) > 0; v.silent {
		v.tell(Error, "", "mutatingwebhookconfiguration/"+v.Name, fmt.Sprintf("the webhook gave no answer for %d of %s (the first is %s) when a dry run asked it: it is not called, or does not answer. %s",
			len(silent), counted(asked, "workload"), silent[0], whileAway(v.entries())), v.logs("webhook"))
	}
	switch {
	case refused != "":
		return refused
	case explained > 0:
		return fmt.Sprintf("the webhook gave no answer for %s, for the reasons above", counted(explained, "workload"))
	case asked == 0:
		return v.nothingOptedIn()
	}
	return ""
}

// nothingOptedIn tells that there is no workload to ask the webhook about, as after an
// installation, or says why that is not known.
func (v *visit) nothingOptedIn() (unlooked string) {
	if why := cmp.Or(v.unlooked("namespaces"), v.lists(v.kinds()...)); why != "" {
		return why
	}
	for _, w := range v.Workloads {
		if standing, _ := v.Serves(w); standing == seen.MaybeServed || v.Namespaces[w.Namespace].Unasked {
			return "the webhook could not be asked: no workload is known to be opted in"
		}
	}
	v.skipped = true
	const all = "kubectl configstamp doctor -A"
	if v.Namespace == "" {
		text, remedy := "nothing is opted in yet, so the webhook was not asked. To opt a namespace in (nothing restarts):", "kubectl label namespace NAME --overwrite "+optIn
		for name, namespace := range v.Namespaces {
			if v.Settings.OptsIn(name, namespace) {
				text, remedy = "namespaces are opted in, but have no workloads yet, so the webhook was not asked. To see these namespaces:", "kubectl get namespaces -l "+optIn
			}
		}
		v.tell(Note, "", "the cluster", text, remedy)
		return ""
	}
	here, about := v.Namespaces[v.Namespace], "namespace/"+v.Namespace
	could := here
	could.OptedIn = true
	switch {
	case v.Settings.OptsIn(v.Namespace, here):
		v.tell(Note, "", about, "it is opted in, but has no workload that this installation looks after, so the webhook was not asked. To look at all namespaces:", all)
	case !v.Settings.OptsIn(v.Namespace, could):
		v.tell(Note, "", about, "configstamp does not serve this namespace, so the webhook was not asked. To look at all namespaces:", all)
	default:
		v.tell(Note, "", about, "nothing in it is opted in, so the webhook was not asked. Look at another namespace with -n, at all with -A, or opt this one in (nothing restarts):", "kubectl label "+about+" --overwrite "+optIn)
	}
	return ""
}

// answered tells of an answer with which something is wrong.
func (v *visit) answered(w *seen.Workload, outcome seen.Outcome) {
	again := "kubectl patch {of} --field-manager=configstamp --dry-run=server -p '{}'"
	switch outcome.Code {
	case seen.Deferred:
		v.tell(Warning, w.Namespace, w.Text(), "the webhook answers, but does not know: "+outcome.Sentence, v.logs("webhook"))
	case seen.KeyLost, seen.Declined, seen.OptedOut, seen.Oversize:
		v.tell(Warning, w.Namespace, w.Text(), "the webhook answers "+outcome.Code.String()+": "+outcome.Sentence, "kubectl configstamp why {of}")
	case seen.Unknown:
		switch outcome.Cause {
		case seen.NotCalled:
			v.tell(Error, w.Namespace, w.Text(), outcome.Sentence+". Nobody can change such a workload until that webhook is back", again)
		case seen.NoDryRun:
			v.tell(Warning, w.Namespace, w.Text(), outcome.Sentence+". So the webhook cannot be asked, and configstamp cannot record the current content",
				"kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o custom-columns=NAME:.metadata.name,SIDE-EFFECTS:.webhooks[*].sideEffects")
		case seen.OtherCause, seen.NoRight, seen.Silence:
			v.tell(Warning, w.Namespace, w.Text(), "nothing is known: "+outcome.Sentence, again)
		}
	case seen.InStep, seen.WouldRoll, seen.WouldRecord, seen.Observed, seen.Held, seen.Missing, seen.Unreadable:
	}
}

// expiresSoon is as in the alert ConfigstampCertificateExpiresSoon.
const expiresSoon = 48 * time.Hour

// certificate looks at what the API server trusts, and at what cert-manager says.
func (v *visit) certificate() string {
	for _, w := range v.entries() {
		if text, weight := v.bundle(w.ClientConfig.CABundle, whileAway(v.entries())); text != "" {
			v.tell(weight, "", "mutatingwebhookconfiguration/"+w.Configuration, text, v.trustedBy("webhook"))
		}
	}
	for _, c := range v.Certificates {
		about, show := "certificate/"+c.Name, "kubectl describe {of}"
		left := c.Ends.Sub(v.now)
		switch {
		case c.Ends.IsZero():
			v.own(Error, about, "it is not issued yet: "+c.Fault, show)
		case left < 0:
			v.own(Error, about, fmt.Sprintf("it expired %s ago. %s", Ago(v.now, c.Ends), whileAway(v.entries())), show)
		case left < expiresSoon:
			v.own(Warning, about, fmt.Sprintf("it expires in %s, and should already have been renewed", Ago(c.Ends, v.now)), show)
		case c.Fault != "":
			v.own(Warning, about, "cert-manager says: "+c.Fault, show)
		}
	}
	if why := cmp.Or(v.unseen(v.Webhooks.Looked, listOfWebhooks), v.unlooked("certificates.cert-manager.io")); why != "" || !v.silent {
		return why
	}
	return "the webhook does not answer, so it is not known which certificate it serves"
}

// trustedBy shows why a caBundle is not as it should be, which a part of configstamp keeps,
// or cert-manager.
func (v *visit) trustedBy(container string) string {
	if len(v.Certificates) > 0 {
		return "kubectl describe certificates -n " + v.Settings.Installation
	}
	return v.logs(container)
}

// bundle says what is wrong with a caBundle, and what comes of it; "" for nothing.
func (v *visit) bundle(text []byte, then string) (string, Weight) {
	if len(text) == 0 {
		return "an entry has no caBundle, so the API server does not trust the webhook. " + then, Error
	}
	var last time.Time
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if authority, err := x509.ParseCertificate(block.Bytes); err == nil && authority.NotAfter.After(last) {
			last = authority.NotAfter
		}
	}
	switch left := last.Sub(v.now); {
	case last.IsZero():
		return "its caBundle holds no certificate, so the API server does not trust the webhook. " + then, Error
	case left < 0:
		return fmt.Sprintf("the certificate authority in its caBundle expired %s ago. %s", Ago(v.now, last), then), Error
	case left < expiresSoon:
		return fmt.Sprintf("the certificate authority in its caBundle expires in %s", Ago(last, v.now)), Warning
	}
	return "", ""
}

func (v *visit) key() string {
	about := "secret/" + v.Key.Name
	switch {
	case !v.Key.Looked:
		return v.unseen(false, "secrets "+v.Key.Name)
	case !v.Key.Exists:
		v.own(Error, about, "it does not exist, so there is no digest key, and nothing is stamped", v.logs("webhook"))
	case len(v.Key.Writers) > 0 && v.Key.Edited().At.IsZero():
		v.own(Error, about, "it holds no digest key, so nothing is stamped", v.logs("webhook"))
	}
	return ""
}

// leadsFor is how old the leader's last word may be. It speaks every 2 s; clocks differ.
const leadsFor = time.Minute

func (v *visit) leader() string {
	about, followed := "lease/"+v.Name+"-controller", ": deploys are stamped, but no edit rolls anything out"
	switch lease := v.Lease; {
	case !lease.Looked:
		return v.unseen(false, "leases.coordination.k8s.io "+v.Name+"-controller")
	case !lease.Exists:
		v.own(Error, about, "it does not exist, so no controller has ever led"+followed, v.logs("controller"))
	case lease.Holder == "":
		v.own(Error, about, "no controller leads"+followed, v.logs("controller"))
	case v.now.Sub(lease.Renewed) > leadsFor:
		v.own(Error, about, fmt.Sprintf("its holder %s has not renewed it for %s, so no controller leads%s", lease.Holder, Ago(v.now, lease.Renewed), followed), v.logs("controller"))
	}
	return ""
}

func (v *visit) defaults() string {
	const about = "configmap/configstamp-settings"
	s := v.Settings
	if s.Absent {
		v.own(Note, about, "it does not exist (settings.published is false, or the chart is older), so this plugin assumes the program's defaults", v.install())
	}
	show := "kubectl get {of} -o yaml"
	if s.Policy.Pause.On && (s.Policy.Pause.Until.IsZero() || s.Policy.Pause.Until.After(v.now)) {
		v.own(Warning, about, "--pause holds every rollout in the cluster", show)
	}
	if s.Policy.Observe {
		v.own(Note, about, "--mode=observe: nothing rolls in the cluster unless a workload or Namespace says otherwise", show)
	}
	if !s.Read && !s.Absent {
		return v.unseen(false, "configmaps configstamp-settings")
	}
	return ""
}
