package answer

import (
	"fmt"
	"strings"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// impactWarnings looks whether people are told what their edit of a ConfigMap or Secret
// rolls out, where the installation is to tell them.
func (v *visit) impactWarnings() string {
	if why := v.unseen(v.Impact.Looked, "validatingwebhookconfigurations.admissionregistration.k8s.io"); why != "" {
		return why
	}
	on := false
	var says []string
	for _, kind := range []string{"ConfigMaps", "Secrets"} {
		is := "off"
		for _, w := range v.ours(v.Impact.All) {
			if w.Name == strings.ToLower(kind)+".configstamp.dev" && w.Selects() {
				on, is = true, "on"
				v.warns(w, kind)
			}
		}
		says = append(says, is+" for "+kind)
	}
	v.says = strings.Join(says, ", ")
	if !on {
		return ""
	}
	if e := v.Endpoints; e.Looked && e.Ready > 0 && e.Impact == 0 { // with none at all, more is wrong than this
		v.own(Warning, "service/"+v.Name, fmt.Sprintf("the port of impact warnings is missing (of %s, none has it). %s", counted(e.Ready, "endpoint"), untold), v.install())
	}
	return v.unseen(v.Endpoints.Looked, "endpointslices.discovery.k8s.io")
}

const untold = "People who edit a ConfigMap or Secret are not told what rolls out."

// warns looks at one entry that has people told of edits of a kind.
func (v *visit) warns(w *seen.Webhook, kind string) {
	about := "validatingwebhookconfiguration/" + w.Configuration
	if text, weight := v.bundle(w.ClientConfig.CABundle, untold); text != "" {
		if weight == Error {
			weight = Warning // all else works
		}
		v.tell(weight, "", about, text, v.trustedBy("controller"))
	}
	if w.FailurePolicy == nil || *w.FailurePolicy != "Ignore" {
		v.tell(Warning, "", about, "its failurePolicy is not Ignore: while no controller answers, nobody can edit or delete "+kind+" in namespaces that are opted in", v.install())
	}
	if w.TimeoutSeconds == nil || *w.TimeoutSeconds > 1 {
		v.tell(Warning, "", about, "its timeoutSeconds is not 1: while no controller answers, each edit of "+kind+" in namespaces that are opted in may take longer than a second", v.install())
	}
}
