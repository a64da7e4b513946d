package answer

import (
	"slices"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

const podEntry = "pins.configstamp.dev"

// pods looks whether the webhook is asked about Pods, where the installation pins them.
func (v *visit) pods(ours []*seen.Webhook) {
	at := slices.IndexFunc(ours, func(w *seen.Webhook) bool { return w.Name == podEntry && w.Selects() })
	switch {
	case !v.Settings.Pins && (at < 0 || !v.Settings.Read):
		return
	case at < 0:
		v.tell(Warning, "", "mutatingwebhookconfiguration/"+ours[0].Configuration,
			"configstamp pins (--pins), and no entry "+podEntry+" asks about Pods: they start with what their ConfigMaps hold now", v.install())
		return
	}
	w := ours[at]
	about := "mutatingwebhookconfiguration/" + w.Configuration
	if !v.Settings.Pins {
		v.tell(Warning, "", about, "its entry "+podEntry+" asks about Pods, and configstamp does not pin (--pins): they start with what their ConfigMaps hold now", v.install())
	}
	if w.FailurePolicy == nil || *w.FailurePolicy != "Ignore" {
		v.tell(Warning, "", about, "the failurePolicy of its entry "+podEntry+" is not Ignore: while no webhook answers, no Pod that pins can be created", v.install())
	}
	if w.TimeoutSeconds == nil || *w.TimeoutSeconds > 1 {
		v.tell(Warning, "", about, "the timeoutSeconds of its entry "+podEntry+" is not 1: while no webhook answers, each Pod that pins may take longer than a second to be created", v.install())
	}
}
